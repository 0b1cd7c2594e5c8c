//go:build linux

package local_test

import (
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
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
	}, "lifecycle", "spec", "exec", "limits", "kill", "concurrency", "isolation", "usage", "powers", "dial", "prepare", "warm", "solo", "attach", "leaks")
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
	}, "lifecycle", "exec", "list", "kill", "concurrency", "isolation", "powers", "terminal", "prepare", "warm", "attach", "resume", "snapshot", "fork", "trial", "egress", "pause", "usage", "leaks")
}

// TestConformanceUser is the whole suite as an ordinary user.
func TestConformanceUser(t *testing.T) {
	linuxtest.Again(t, "^(TestConformance|TestConformanceKeeper)$")
}
