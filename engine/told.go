package engine

import (
	"encoding/json"
	"slices"

	"github.com/cove-sandbox/cove"
)

// told returns an answer as its caller may see it: as [visible] says, and for callers that
// are no operators without paths of the host.
func told[T any](v view, out T) T {
	out = visible(out)
	if v.operates() {
		return out
	}
	switch was := any(out).(type) {
	case *cove.Run:
		if was == nil || was.Answer == nil || was.Answer.Error == nil {
			return out
		}
		c, answer, failure := *was, *was.Answer, *was.Answer.Error
		hide := v.e.cfg.Paths.Text // others may quote what the caller sent
		if failure.Type == cove.RunUnavailable || failure.Type == cove.RunInternalError {
			hide = v.e.cfg.Paths.All
		}
		failure.Message = hide(failure.Message)
		answer.Error, c.Answer = &failure, &answer
		return any(&c).(T) //nolint:forcetypeassert // T is *cove.Run
	case []cove.ProviderReport:
		list := slices.Clone(was)
		for i := range list {
			c := &list[i].Capabilities
			c.Why, c.Remedy, c.Notes = v.e.cfg.Paths.All(c.Why), v.e.cfg.Paths.All(c.Remedy), slices.Clone(c.Notes)
			for n := range c.Notes {
				c.Notes[n] = v.e.cfg.Paths.All(c.Notes[n])
			}
		}
		return any(list).(T) //nolint:forcetypeassert // T is a list of reports
	case cove.Template:
		was.Source, was.Why, was.Remedy = v.e.cfg.Paths.All(was.Source), v.e.cfg.Paths.All(was.Why), v.e.cfg.Paths.All(was.Remedy)
		return any(was).(T) //nolint:forcetypeassert // T is cove.Template
	case cove.Event:
		if was.Phase == cove.EngineNote { // its data has the messages of errors
			was.Data = json.RawMessage(v.e.cfg.Paths.All(string(was.Data)))
		}
		return any(was).(T) //nolint:forcetypeassert // T is cove.Event
	}
	return out
}

// tellError returns an error as its caller may see it.
func (v view) tellError(err error) error {
	if err == nil || v.operates() {
		return err
	}
	return v.e.cfg.Paths.Error(err)
}

// operates reports a caller that runs the server, and knows where its files are.
func (v view) operates() bool { return v.p.May(cove.ScopeAdmin) }
