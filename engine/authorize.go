package engine

import (
	"context"

	"github.com/cove-sandbox/cove"
)

// Authorize returns the error of an action that the caller's key has no scope for,
// before there is anything to do it with: servers ask it before they read a request.
// The refusal is journaled like that of the action, which is one of verbs; a key that
// may do any of them, of its own tenant at least, gets nil and nothing is journaled.
// session may be "".
func (e *Engine) Authorize(ctx context.Context, p cove.Principal, session cove.ID, verbs ...cove.Verb) error {
	v := e.bound(p)
	for _, verb := range verbs {
		if d := e.cfg.Policy.Decide(cove.Action{Verb: verb, Principal: v.p, Tenant: p.Tenant}); d.Effect != cove.Deny || d.Layer != cove.Authorization {
			return nil
		}
	}
	return actDone(ctx, v, action{Action: cove.Action{Verb: verbs[0], Tenant: p.Tenant}, id: session}, func(context.Context, *step) error { return nil })
}
