package providertest

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

// Require skips the test, with the reason, where the provider named is not
// ready on this host. Where the environment variable COVE_REQUIRE, a list with
// commas, holds its name, that is a failure instead: what must be there is
// never skipped in silence.
func Require(t *testing.T, name string, caps cove.Capabilities) {
	t.Helper()
	if caps.Ready {
		return
	}
	required := strings.Split(os.Getenv("COVE_REQUIRE"), ",")
	if slices.Contains(required, name) {
		t.Fatalf("COVE_REQUIRE names provider %s, and it is not ready: %s (%s)", name, caps.Why, caps.Remedy)
	}
	t.Skipf("provider %s is not ready: %s (%s)", name, caps.Why, caps.Remedy)
}

// Ready is Require for an open provider, which is closed if the test ends.
func Ready(t *testing.T, p cove.Provider) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	caps, err := p.Probe(ctx)
	if err != nil {
		t.Fatalf("probe provider %s: %v", p.Name(), err)
	}
	if !caps.Ready {
		if err := p.Close(); err != nil {
			t.Errorf("close provider %s: %v", p.Name(), err)
		}
	}
	Require(t, p.Name(), caps)
}
