package providertest

import (
	"context"
	"fmt"
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
	Lacks(t, name, fmt.Sprintf("provider %s is not ready: %s (%s)", name, caps.Why, caps.Remedy))
}

// Lacks ends a test that lacks something: it is skipped with the reason, and fails
// where COVE_REQUIRE names what is lacking.
func Lacks(t testing.TB, name, why string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("COVE_REQUIRE"), ","), name) {
		t.Fatalf("COVE_REQUIRE names %s, and %s", name, why)
	}
	t.Skip(why)
}

// Needs returns a variable in which make test names an engine, or something else that
// is not a part of this module. A test without it lacks what is called name.
func Needs(t testing.TB, name, variable string) string {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		Lacks(t, name, variable+" is not set; run make test, which sets it")
	}
	return value
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
