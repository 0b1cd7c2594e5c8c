package engine

import (
	"context"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// runHost lends sandboxes to a runner, for one caller.
type runHost struct{ view }

var _ cove.RunHost = runHost{}

// Room implements [cove.RunHost].
func (h runHost) Room(ctx context.Context, provider string, tools ...cove.Tool) (cove.RunSandbox, func(bool), error) {
	e := h.e
	if len(tools) > 1 {
		return cove.RunSandbox{}, nil, cove.Errorf(cove.Internal, "a room has one tool, not %d", len(tools))
	}
	by, spec, _, err := h.placeSpec(ctx, cove.RunPlace{Provider: provider})
	if err != nil {
		return cove.RunSandbox{}, nil, notMade(err)
	}
	r, err := e.enterRoom(ctx, by.Provider, spec.Template, oneTool(tools))
	if err != nil {
		return cove.RunSandbox{}, nil, notMade(err)
	}
	out := cove.RunSandbox{
		Sandbox: r.sandbox, Provider: by.Name(), Instead: by.instead, Template: spec.Template,
		Memory: roomMemory, CPUs: 1, Mounted: r.mounted, Keep: r.keep,
	}
	return out, func(broken bool) { e.leaveRoom(ctx, r, broken) }, nil
}

func oneTool(tools []cove.Tool) cove.Tool {
	if len(tools) == 0 {
		return cove.Tool{}
	}
	return tools[0]
}

// Place implements [cove.RunHost].
func (h runHost) Place(ctx context.Context, want cove.RunPlace) (cove.RunSandbox, func(bool), error) {
	if want.Session != "" {
		return h.inSession(ctx, want.Session)
	}
	p, waited, err := h.takePlace(ctx, want)
	if err != nil {
		return cove.RunSandbox{}, nil, err
	}
	out := p.sandbox
	out.Waited = waited
	return out, func(broken bool) { h.e.leavePlace(ctx, p, broken) }, nil
}

// Kernels implements [cove.RunHost].
func (h runHost) Kernels(provider string) cove.Kernels { return h.e.kernels(provider) }

// inSession lends the sandbox of a session of the caller's. It does not end with the
// question, whatever became of that.
func (h runHost) inSession(ctx context.Context, id cove.ID) (cove.RunSandbox, func(bool), error) {
	l, err := h.e.find(h.p.Tenant, id)
	if err != nil {
		return cove.RunSandbox{}, nil, err
	}
	if h.e.cfg.programs(l.view().Spec, nil) != nil {
		// What answers is Cove's own, started from files that the session can replace.
		return cove.RunSandbox{}, nil, cove.Errorf(cove.Unsupported, "the session has a command policy, and questions to data start programs that are not on its list").
			With("field", "session_id").Remedy("ask without a session, or in one without a command policy")
	}
	leave, err := h.rouse(ctx, action{Action: cove.Action{Verb: cove.ContextRun, Session: l.view()}, on: true}, l)
	defer leave()
	if err != nil {
		return cove.RunSandbox{}, nil, err
	}
	sandbox, err := l.enter()
	if err != nil {
		return cove.RunSandbox{}, nil, err
	}
	d, began := l.desk(sandbox), time.Now()
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		l.leave()
		return cove.RunSandbox{}, nil, ctx.Err()
	}
	s := l.view()
	out := cove.RunSandbox{
		Sandbox: sandbox, Provider: s.Provider, Instead: s.Instead, Template: s.Spec.Template,
		Memory: s.Spec.Resources.Memory, CPUs: s.Spec.Resources.CPUs, Keep: d.keep, Waited: time.Since(began),
		Code: h.codeIn(l, sandbox),
	}
	return out, func(bool) {
		<-d.turn
		l.leave()
	}, nil
}

// desk is where the questions of a session are answered, one after the other. It is
// gone with the sandbox.
type desk struct {
	in   cove.Sandbox
	turn chan struct{}
	keep *sync.Map
}

// desk returns that of the sandbox that the lease has.
func (l *lease) desk(in cove.Sandbox) *desk {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked == nil || l.asked.in != in {
		l.asked = &desk{in: in, turn: make(chan struct{}, 1), keep: &sync.Map{}}
	}
	return l.asked
}
