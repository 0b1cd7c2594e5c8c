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
		cfg.World = map[string]string{"example.com:8080": "hello from outside\n", "www.example.org:8080": "hello from outside\n"}
		p, err := fake.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return outward{p, p}
	}, only...)
}

// outward is a fake with what there is to reach in its world.
type outward struct {
	cove.Provider

	p *fake.Provider
}

func (o outward) Unwrap() cove.Provider { return o.p }

func (outward) Outside() providertest.Outside {
	return providertest.Outside{Name: "example.com", Other: "www.example.org", Port: 8080, Text: "hello from outside\n"}
}

func TestConformance(t *testing.T) { conform(t, fake.Config{}) }

// A fake without a keeper is one whose programs end with it.
func TestConformanceUnkept(t *testing.T) {
	conform(t, fake.Config{Powers: []cove.Power{cove.PowerAttach}}, "attach", "background", "powers")
}

// A fake that can do and enforce nothing still keeps the contract.
func TestConformancePoor(t *testing.T) {
	conform(t, fake.Config{
		Name: "poor", Powers: []cove.Power{}, Templates: []string{"only"},
		Isolation: cove.Isolation{Boundary: cove.BoundaryNone, CPU: cove.Soft},
	}, "lifecycle", "spec", "powers", "exec", "background")
}
