package platformtest

import (
	"testing"

	"github.com/cove-sandbox/cove"
)

func scopeCases() []testCase {
	return []testCase{
		{"missing_one_is_denied", missingScope},
		{"one_is_enough", oneScope},
		{"none_is_denied_everything", noScope},
	}
}

// missingScope: a caller with every scope but the needed one is denied, for
// every verb, and the journal has one line about it.
func missingScope(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	at := r.things(r.user("acme"))
	table := calls()
	for _, v := range cove.Verbs() {
		t.Run(string(v), func(t *testing.T) {
			p := r.as(cove.Principal{Name: "lacking", Tenant: "acme", Scopes: without(append(v.Trait().Also, v.Trait().Scope)...)})
			seq := r.newest()
			wantCode(t, table[v].do(r.ctx, p, at), cove.Denied)
			lines := all(r, r.admin().Admin().Events(r.ctx, cove.EventFilter{After: seq, Tenant: "acme"}))
			if len(lines) != 1 || lines[0].Kind != string(v) || lines[0].Effect != cove.Deny {
				t.Errorf("the journal tells a denial as %+v", lines)
			}
		})
	}
	same(t, "the file after all denials", r.read(r.user("acme"), at.session, "kept"), "kept")
}

// newest is the number of the journal's last line.
func (r *rig) newest() int64 {
	r.t.Helper()
	var seq int64
	for _, e := range all(r, r.admin().Admin().Events(r.ctx, cove.EventFilter{})) {
		seq = max(seq, e.Seq)
	}
	return seq
}

// oneScope: the scope that a verb needs is all that it needs. Each verb has a
// session of its own, since some of them end it.
func oneScope(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	table := calls()
	for _, v := range cove.Verbs() {
		t.Run(string(v), func(t *testing.T) {
			at := r.things(r.user("acme"))
			p := r.as(cove.Principal{Name: "bare", Tenant: "acme", Scopes: []cove.Scope{v.Trait().Scope}})
			if err := table[v].do(r.ctx, p, at); cove.CodeOf(err) == cove.Denied || cove.CodeOf(err) == cove.Internal {
				t.Errorf("with scope %s: %v", v.Trait().Scope, err)
			}
			for _, scope := range v.Trait().Also {
				p := r.as(cove.Principal{Name: "bare", Tenant: "acme", Scopes: []cove.Scope{scope}})
				if err := table[v].do(r.ctx, p, at); cove.CodeOf(err) == cove.Denied || cove.CodeOf(err) == cove.Internal {
					t.Errorf("with scope %s: %v", scope, err)
				}
			}
		})
	}
}

func noScope(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	at := r.things(r.user("acme"))
	p := r.as(cove.Principal{Name: "nobody", Tenant: "acme"})
	for v, c := range calls() {
		if err := c.do(r.ctx, p, at); cove.CodeOf(err) != cove.Denied {
			t.Errorf("%s without any scope: %v; want denied", v, err)
		}
	}
}
