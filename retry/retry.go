package retry

import (
	"context"
	"errors"

	"github.com/cove-sandbox/cove"
)

// On returns in with retries. The answer knows only sessions that were opened
// through it. It is as safe for concurrent use as in is.
func On(in cove.Platform) cove.Platform {
	return platform{Platform: in, mem: newMemory(maxMemory)}
}

// platform is another one whose sessions are followed from one to the next.
// What it does not mention has nothing to do with a session.
type platform struct {
	cove.Platform

	mem *memory
}

// Sessions implements [cove.Platform].
func (p platform) Sessions() cove.Sessions { return sessions{p.Platform.Sessions(), p.mem} }

// Processes implements [cove.Platform].
func (p platform) Processes(id cove.ID) cove.Processes { return processes{p, id} }

// Files implements [cove.Platform].
func (p platform) Files(id cove.ID) cove.Files { return files{p, id} }

// Contexts implements [cove.Platform].
func (p platform) Contexts(id cove.ID) cove.Contexts { return contexts{p, id} }

// Ports implements [cove.Platform].
func (p platform) Ports(id cove.ID) cove.Ports { return ports{p, id} }

// Trials implements [cove.Platform].
func (p platform) Trials(id cove.ID) cove.Trials { return trials{p, id} }

// Snapshots implements [cove.Platform].
func (p platform) Snapshots() cove.Snapshots { return snapshots{p.Platform.Snapshots(), p.mem} }

// Links implements [cove.Platform].
func (p platform) Links() cove.Links { return links{p.Platform.Links(), p.mem} }

// Reason returns why the call that has ctx is made once more, or "" for one that
// is made for the first time. A platform across a network passes it on.
func Reason(ctx context.Context) string {
	reason, _ := ctx.Value(reasonKey{}).(string) // most have none
	return reason
}

type reasonKey struct{}

// gone are the reasons for which a session is opened anew, and what became of it.
var gone = map[string]string{
	cove.ReasonSessionExpired: "the session has expired",
	cove.ReasonNodeLost:       "the session was lost with what held it",
}

// over returns why nothing ran, where err says that the session is gone by itself,
// and "" where it says anything else.
func over(err error) (reason string) {
	if reason = cove.ReasonOf(err); cove.CodeOf(err) != cove.NotFound || gone[reason] == "" {
		return ""
	}
	return reason
}

// once runs something in the session that id stands for, and once more in
// another that is opened in its place where that one is gone and repeatable
// says that nothing is lost by it. answer is the part of what run returned that
// says where it ran.
func once[T any](ctx context.Context, p platform, id cove.ID, repeatable func() bool, run func(context.Context, cove.ID) (T, error), answer func(T) *cove.Execution) (T, error) {
	h, was := p.mem.handle(id), p.mem.now(id)
	out, err := run(ctx, was)
	reason := over(err)
	retry := reason != "" && h != nil && repeatable()
	if retry {
		out, err = again(ctx, p, h, was, reason, run)
	}
	if err == nil && (h.tell() || retry) {
		answer(out).Recreated = true
	}
	return out, err
}

// again runs what a session that is gone refused, in one that is opened in its
// place.
func again[T any](ctx context.Context, p platform, h *handle, was cove.ID, reason string, run func(context.Context, cove.ID) (T, error)) (T, error) {
	var none T
	now, err := h.renew(ctx, was, func(ctx context.Context, req cove.OpenRequest) (*cove.Session, error) {
		s, err := p.Platform.Sessions().Open(ctx, req)
		if err == nil {
			p.mem.follow(h, s.ID)
		}
		return s, err
	})
	if err != nil {
		return none, notReopened(err, reason)
	}
	return run(context.WithValue(ctx, reasonKey{}, reason), now)
}

// notReopened is the error of a session that is gone and could not be opened
// again: that of opening it, in a sentence that says why it was opened.
func notReopened(err error, reason string) error {
	e, ok := errors.AsType[*cove.Error](err)
	if !ok {
		return err
	}
	c := *e
	c.Message = gone[reason] + ", and a new one cannot be opened in its place: " + e.Message
	return &c
}
