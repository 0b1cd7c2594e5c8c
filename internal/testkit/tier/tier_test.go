package tier_test

import (
	"slices"
	"testing"

	"github.com/cove-sandbox/cove/internal/testkit/tier"
)

func TestTiers(t *testing.T) {
	skipped := !t.Run("full", func(t *testing.T) { tier.Full(t, "TestTiers looks at the result") })
	ran := false
	t.Run("full", func(t *testing.T) {
		tier.Full(t, "TestTiers looks at what ran")
		ran = true
	})
	if skipped {
		t.Error("a skipped test counts as failed")
	}
	if ran == testing.Short() {
		t.Errorf("ran a test of the full tier: %v, with -short=%v", ran, testing.Short())
	}
	want := []string{"all", "of", "it"}
	if testing.Short() {
		want = []string{"exec"}
	}
	if got := tier.Pick([]string{"exec"}, "all", "of", "it"); !slices.Equal(got, want) {
		t.Errorf("Pick gave %v, want %v", got, want)
	}
}
