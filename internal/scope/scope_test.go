package scope_test

import (
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/scope"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	exec := cove.ProcessExec.Trait()
	everything := cove.Principal{Name: "a", Tenant: "one", Scopes: []cove.Scope{cove.ScopeAll}}
	for _, c := range []struct {
		name   string
		action cove.Action
		word   cove.Scope // that is missing; "" where nothing is
	}{
		{"who may do everything", cove.Action{Verb: cove.ProcessExec, Principal: everything}, ""},
		{"whatever the command is", cove.Action{Verb: cove.ProcessExec, Principal: everything, Exec: &cove.ExecRequest{Line: "rm -rf /"}}, ""},
		{"the scope of the verb", cove.Action{Verb: cove.ProcessExec, Principal: cove.Principal{Scopes: []cove.Scope{exec.Scope}}}, ""},
		{"one of several that do", cove.Action{Verb: cove.LinkLogin, Principal: cove.Principal{Scopes: []cove.Scope{cove.ScopeRuns}}}, ""},
		{"none of several that do", cove.Action{Verb: cove.LinkLogin, Principal: cove.Principal{Scopes: []cove.Scope{cove.ScopeMetrics}}}, cove.ScopeRead},
		{"no scope", cove.Action{Verb: cove.ProcessExec, Principal: cove.Principal{Name: "b"}}, exec.Scope},
		{"trusted code of who is", cove.Action{Verb: cove.ContextRun, Principal: everything, Code: &cove.CodeRequest{Trusted: true}}, ""},
		{
			"trusted code of who is not",
			cove.Action{Verb: cove.ContextRun, Principal: cove.Principal{Scopes: []cove.Scope{cove.ContextRun.Trait().Scope}}, Code: &cove.CodeRequest{Trusted: true}},
			cove.ScopeTrusted,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := scope.Policy{}.Decide(c.action)
			if c.word == "" {
				if d.Effect != cove.Allow || d.Refusal != nil || d.Limits != (cove.Limits{}) {
					t.Fatalf("refused: %+v", d)
				}
				return
			}
			if d.Effect != cove.Deny || d.Layer != cove.Authorization || d.Refusal == nil {
				t.Fatalf("not refused: %+v", d)
			}
			if r := d.Refusal; r.Rule != scope.Rule || r.Word != string(c.word) || !strings.Contains(r.Reason, string(c.word)) {
				t.Errorf("refused with %+v", r)
			}
		})
	}
}

// TestDecideOwn: what is of one's own tenant may need less.
func TestDecideOwn(t *testing.T) {
	t.Parallel()
	for _, verb := range cove.Verbs() {
		trait := verb.Trait()
		if trait.Own == "" {
			continue
		}
		p := cove.Principal{Tenant: "one", Scopes: []cove.Scope{trait.Own}}
		if d := (scope.Policy{}).Decide(cove.Action{Verb: verb, Principal: p, Tenant: "one"}); d.Effect != cove.Allow {
			t.Errorf("%s of one's own tenant is refused: %+v", verb, d.Refusal)
		}
		if p.May(trait.Scope) {
			continue
		}
		if d := (scope.Policy{}).Decide(cove.Action{Verb: verb, Principal: p, Tenant: "two"}); d.Effect != cove.Deny || d.Refusal.Word != string(trait.Scope) {
			t.Errorf("%s of another tenant: %+v", verb, d)
		}
		if d := (scope.Policy{}).Decide(cove.Action{Verb: verb, Principal: cove.Principal{Tenant: "one"}, Tenant: "one"}); d.Effect != cove.Deny || d.Refusal.Word != string(trait.Own) {
			t.Errorf("%s of one's own tenant without a scope: %+v", verb, d)
		}
	}
}
