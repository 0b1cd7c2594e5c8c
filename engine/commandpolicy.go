package engine

import (
	"strings"

	"github.com/cove-sandbox/cove"
)

// programs returns what programs of a session may execute; nil where it has no command
// policy. A program that a person must agree to is among them for a request that asks
// for it, and never without a request. What Cove itself starts in a session, for
// whatever call, is bound by it, too.
func (c Config) programs(s cove.Spec, req *cove.ExecRequest) *cove.Programs {
	return c.policyOf(s, req).Programs
}

// policyOf is what the command policy of a session says of a request; nil stands for
// the start of an interpreter.
func (c Config) policyOf(s cove.Spec, req *cove.ExecRequest) cove.Decision {
	a := cove.Action{Verb: cove.ContextOpen, Session: &cove.Session{Spec: s}, Principal: cove.Principal{Scopes: []cove.Scope{cove.ScopeAll}}}
	if req != nil {
		a.Verb, a.Exec = cove.ProcessExec, req
	}
	return c.Policy.Decide(a)
}

// checkPolicy refuses a session in which the names and helpers of its command policy would
// stand for other programs: by variables, and by volumes where helpers are.
func (c Config) checkPolicy(s cove.Spec) error {
	d := c.policyOf(s, nil)
	if d.Effect == cove.Deny {
		return cove.InvalidField("env", "%s", d.Refusal.Reason)
	}
	if d.Programs == nil {
		return nil
	}
	for _, v := range s.Volumes {
		for _, h := range d.Programs.Helpers {
			if below(h, v.Target) || below(v.Target, h) {
				return cove.InvalidField("volumes", "a volume at %q would put other programs in the place of %q, which the session's command policy lets run; choose another target", v.Target, h)
			}
		}
	}
	return nil
}

// below reports whether a path is a directory or in it.
func below(dir, path string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }
