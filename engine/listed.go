package engine

import "github.com/cove-sandbox/cove"

// programs returns what programs of a session may execute; nil where it has no command
// policy. A program that a person must agree to is among them for a request that asks
// for it, and never without a request. What Cove itself starts in a session, for
// whatever call, is bound by it, too.
func (c Config) programs(s cove.Spec, req *cove.ExecRequest) *cove.Programs {
	a := cove.Action{Verb: cove.ContextOpen, Session: &cove.Session{Spec: s}, Principal: cove.Principal{Scopes: []cove.Scope{cove.ScopeAll}}}
	if req != nil {
		a.Verb, a.Exec = cove.ProcessExec, req
	}
	return c.Policy.Decide(a).Programs
}
