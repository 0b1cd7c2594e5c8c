package wire_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func TestPrincipalOfANode(t *testing.T) {
	for _, want := range []cove.Principal{
		{Name: "a", Tenant: "t", Scopes: []cove.Scope{cove.ScopeRead}},
		{
			Name: "a", Label: "\x00ü", Tenant: "t", Scopes: []cove.Scope{cove.ScopeAll, cove.ScopeExec}, Limits: cove.KeyLimit{Sessions: 3, RatePerSecond: 0.5},
			Defaults: cove.Spec{Env: map[string]string{"A": "b"}, Workspace: cove.Workspace{Moves: true}}, ExpiresAt: time.Unix(1e9, 5).UTC(),
		},
	} {
		text, err := wire.EncodePrincipal(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.DecodePrincipal(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	long := cove.Principal{Name: "a", Tenant: "t", Scopes: []cove.Scope{cove.ScopeAll}, Defaults: cove.Spec{Env: map[string]string{"A": strings.Repeat("x", 64<<10)}}}
	if _, err := wire.EncodePrincipal(long); cove.CodeOf(err) != cove.Unsupported {
		t.Errorf("one that fits into no header: %v", err)
	}
}

// Whatever a node does not understand whole, it does not believe: a bound that it does
// not know must hold, too.
func TestNoPrincipal(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "no JSON": "x", "nobody": `{}`, "no tenant": `{"name":"a","scopes":["*"]}`, "no scope": `{"name":"a","tenant":"t","scopes":[]}`,
		"a new bound": `{"name":"a","tenant":"t","scopes":["*"],"bound":1}`, "in its limits": `{"name":"a","tenant":"t","scopes":["*"],"limits":{"new":1}}`,
		"two": `{"name":"a","tenant":"t","scopes":["*"]}{}`,
	} {
		if p, err := wire.DecodePrincipal(base64.RawURLEncoding.EncodeToString([]byte(text))); cove.CodeOf(err) != cove.Unauthenticated {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if _, err := wire.DecodePrincipal("%"); cove.CodeOf(err) != cove.Unauthenticated {
		t.Errorf("no base64: %v", err)
	}
}
