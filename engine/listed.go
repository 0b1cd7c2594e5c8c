package engine

import "github.com/cove-sandbox/cove"

// programs returns what programs of a session may execute; nil where it has no command
// policy. What Cove itself starts in a session, for whatever call, is bound by it, too.
func (c Config) programs(s cove.Spec) *cove.Programs {
	return c.Policy.Decide(cove.Action{
		Verb: cove.ContextOpen, Session: &cove.Session{Spec: s}, Principal: cove.Principal{Scopes: []cove.Scope{cove.ScopeAll}},
	}).Programs
}
