package fake_test

import (
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/fake"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// conform runs the suite on a fake with a configuration.
func conform(t *testing.T, cfg fake.Config, only ...string) {
	providertest.Run(t, func(t *testing.T) cove.Provider {
		cfg.Dir = providertest.Dir(t)
		p, err := fake.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}, only...)
}

func TestConformance(t *testing.T) { conform(t, fake.Config{}) }

// A fake that can do and enforce nothing still keeps the contract.
func TestConformancePoor(t *testing.T) {
	conform(t, fake.Config{
		Name: "poor", Powers: []cove.Power{}, Templates: []string{"only"},
		Isolation: cove.Isolation{Boundary: cove.BoundaryNone, CPU: cove.Soft},
	}, "lifecycle", "spec", "powers", "exec", "background")
}
