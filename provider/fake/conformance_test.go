package fake_test

import (
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/fake"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// conform runs the suite on a fake with a configuration.
func conform(t *testing.T, cfg fake.Config, only ...string) {
	keepers := map[string]*fake.Keeper{}
	providertest.Run(t, func(t *testing.T) cove.Provider {
		cfg.Dir = providertest.Dir(t)
		if cfg.Keeper = keepers[cfg.Dir]; cfg.Keeper == nil {
			cfg.Keeper = fake.NewKeeper()
			keepers[cfg.Dir] = cfg.Keeper
			t.Cleanup(cfg.Keeper.Close)
		}
		p, err := fake.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}, only...)
}

func TestConformance(t *testing.T) { conform(t, fake.Config{}) }

// A fake without a keeper is one whose programs end with it.
func TestConformanceUnkept(t *testing.T) {
	conform(t, fake.Config{Powers: []cove.Power{cove.PowerAttach}}, "attach", "background", "powers", "resume")
}

// A fake that can do and enforce nothing still keeps the contract.
func TestConformancePoor(t *testing.T) {
	conform(t, fake.Config{
		Name: "poor", Powers: []cove.Power{}, Templates: []string{"only"},
		Isolation: cove.Isolation{Boundary: cove.BoundaryNone, CPU: cove.Soft},
	}, "lifecycle", "spec", "powers", "exec", "background")
}
