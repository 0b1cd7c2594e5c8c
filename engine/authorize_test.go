package engine_test

import (
	"errors"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

// TestAuthorize: a key without the scopes is refused with one line in the journal, and
// a key that has one of them leaves none.
func TestAuthorize(t *testing.T) {
	j := &countingJournal{}
	e := openEngine(t, func(c *engine.Config) { c.Journal = j })
	id := cove.NewID()
	verbs := []cove.Verb{cove.LinkDownload, cove.LinkUpload}
	for _, c := range []struct {
		scope cove.Scope
		lines int
	}{{cove.ScopeRead, 1}, {cove.ScopeFileRead, 0}, {cove.ScopeFileWrite, 0}} {
		j.lines = nil
		err := e.Authorize(t.Context(), cove.Principal{Name: "eve", Scopes: []cove.Scope{c.scope}}, id, verbs...)
		if denied := errors.Is(err, cove.Denied); denied != (c.lines == 1) || !denied && err != nil || len(j.lines) != c.lines {
			t.Errorf("with %s: %v and %+v", c.scope, err, j.lines)
			continue
		}
		if c.lines == 0 {
			continue
		}
		if l := j.lines[0]; l.Kind != string(cove.LinkDownload) || l.Effect != cove.Deny || l.Session != id || l.Principal != "eve" || l.Tenant != cove.DefaultTenant {
			t.Errorf("the line is %+v", l)
		}
	}
}
