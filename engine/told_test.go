package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/hostpath"
)

// Paths of a host, below a root that is known and elsewhere.
const (
	knownPath   = "/srv/cove-home/providers/x"
	unknownPath = "/opt/elsewhere/socket"
)

// pathy is a provider that fails with paths of the host.
type pathy struct{ cove.Provider }

func (p pathy) Create(context.Context, cove.ID, cove.Spec) (cove.Sandbox, error) {
	return nil, cove.Errorf(cove.Unavailable, "mkdir %s: no space", knownPath).With("dir", knownPath).Remedy("look at %s", unknownPath)
}

func (p pathy) Probe(ctx context.Context) (cove.Capabilities, error) {
	caps, err := p.Provider.Probe(ctx)
	caps.Notes = append(caps.Notes, "it uses "+unknownPath)
	return caps, err
}

// TestPathsOfTheHost: operators are told paths of the host, and others are not.
func TestPathsOfTheHost(t *testing.T) {
	e := newWorld(t).open(func(c *engine.Config) {
		c.Providers[0], c.Paths = pathy{c.Providers[0]}, hostpath.New("/srv/cove-home")
	})
	tenant := boss
	tenant.Scopes = []cove.Scope{cove.ScopeRead, cove.ScopeWrite, cove.ScopeRuns}
	for who, c := range map[string]struct {
		p     cove.Principal
		paths bool
	}{"operator": {boss, true}, "tenant": {tenant, false}} {
		p := e.As(c.p)
		said := map[string]string{}
		_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
		ours, ok := errors.AsType[*cove.Error](err)
		if !ok || ours.Code != cove.Unavailable {
			t.Fatalf("%s: %v", who, err)
		}
		said["error"] = ours.Message + fmt.Sprint(ours.Details)
		if !strings.Contains(ours.Error(), knownPath) {
			t.Errorf("%s: the log would not have the path: %v", who, err)
		}
		reports, err := p.Admin().Doctor(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		said["doctor"] = text(t, reports)
		for what, text := range said {
			if found := strings.Contains(text, "/srv/") || strings.Contains(text, "/opt/"); found != c.paths {
				t.Errorf("%s of %s: %s", what, who, text)
			}
		}
	}
	for what, answer := range map[string]any{
		"run":      &cove.Run{Answer: &cove.RunAnswer{Error: &cove.RunError{Type: cove.RunUnavailable, Message: "no " + unknownPath}}},
		"question": &cove.Run{Answer: &cove.RunAnswer{Error: &cove.RunError{Type: cove.RunSQLFailed, Message: "no " + knownPath}}},
		"template": cove.Template{Source: knownPath, Why: unknownPath, Remedy: unknownPath},
		"event":    cove.Event{Phase: cove.EngineNote, Data: json.RawMessage(`{"reason":"no ` + unknownPath + `"}`)},
	} {
		before := text(t, answer)
		if got := text(t, engine.Told(e, tenant, answer)); strings.Contains(got, "/srv/") || strings.Contains(got, "/opt/") || !json.Valid([]byte(got)) {
			t.Errorf("%s: %s", what, got)
		}
		if got := text(t, engine.Told(e, boss, answer)); got != before {
			t.Errorf("%s for an operator: %s", what, got)
		}
		if text(t, answer) != before {
			t.Errorf("%s: the record itself was changed", what)
		}
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
