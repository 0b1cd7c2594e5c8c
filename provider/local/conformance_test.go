//go:build linux

package local_test

import (
	"os"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
)

func open(t *testing.T) cove.Provider {
	p, err := local.New(local.Config{Dir: providertest.Dir(t)})
	if err != nil {
		t.Fatal(err)
	}
	providertest.Ready(t, p)
	return p
}

func TestConformance(t *testing.T) { providertest.Run(t, open) }

// TestConformanceOnce is about sandboxes that the provider builds itself.
func TestConformanceOnce(t *testing.T) {
	linuxtest.NeedRoot(t) // others have a spawner all the same
	providertest.Run(t, func(t *testing.T) cove.Provider {
		p, err := local.New(local.Config{Dir: providertest.Dir(t), Once: true})
		if err != nil {
			t.Fatal(err)
		}
		providertest.Ready(t, p)
		return p
	}, tier.Pick([]string{"lifecycle", "exec"}, "lifecycle", "spec", "exec", "limits", "kill", "concurrency", "isolation", "usage", "powers", "dial", "prepare", "warm", "solo", "attach", "leaks")...)
}

// TestConformanceKeeper is about sandboxes that outlive the provider.
func TestConformanceKeeper(t *testing.T) {
	providertest.Run(t, func(t *testing.T) cove.Provider {
		p, err := local.New(local.Config{Dir: providertest.Dir(t), Keeper: true})
		if err != nil {
			t.Fatal(err)
		}
		providertest.Ready(t, p)
		return p
	}, tier.Pick([]string{"lifecycle", "attach", "resume"}, "lifecycle", "exec", "list", "kill", "concurrency", "isolation", "powers", "terminal", "prepare", "warm", "attach", "resume", "snapshot", "trial", "egress", "pause", "usage", "leaks")...)
}

// TestConformanceUser runs the groups of the suite that take another path for an
// ordinary user.
func TestConformanceUser(t *testing.T) { linuxtest.Again(t, "^TestConformanceOrdinary$") }

// TestConformanceOrdinary is what [TestConformanceUser] runs.
func TestConformanceOrdinary(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("it is for an ordinary user")
	}
	providertest.Run(t, open, tier.Pick([]string{"lifecycle", "exec", "isolation", "escape"},
		"lifecycle", "exec", "limits", "volumes", "isolation", "escape", "snapshot", "trial", "egress", "attach", "usage", "leaks")...)
}

// TestConformanceKeeperUser is about sandboxes of an ordinary user that outlive the
// provider.
func TestConformanceKeeperUser(t *testing.T) {
	tier.Full(t, "TestConformanceKeeper runs as root, and TestKeeperUser as an ordinary user")
	linuxtest.Again(t, "^TestConformanceKeeper$")
}
