//go:build linux

package gvisor_test

import (
	"os"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/gvisor"
	"github.com/cove-sandbox/cove/provider/providertest"
)

func TestConformance(t *testing.T) {
	providertest.Run(t, open, tier.Pick([]string{"lifecycle", "exec", "volumes", "isolation", "escape", "egress", "attach"})...)
}

// TestConformanceUser is the suite as an ordinary user, without the groups that are
// the same for everybody once programs and files work.
func TestConformanceUser(t *testing.T) {
	tier.Full(t, "TestConformance runs as root; TestAheadUser starts a sandbox as an ordinary user")
	linuxtest.NeedRoot(t)
	for variable, path := range map[string]string{runscVariable: os.Getenv(runscVariable), agentVariable: program.Agent(t)} {
		t.Setenv(variable, shared(t, path))
	}
	linuxtest.Again(t, "^TestConformanceOrdinary$")
}

// TestConformanceOrdinary is what [TestConformanceUser] runs.
func TestConformanceOrdinary(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("it is for an ordinary user")
	}
	providertest.Run(t, open, "lifecycle", "spec", "exec", "limits", "kill", "terminal", "isolation", "usage", "powers", "pause", "snapshot", "egress", "prepare", "attach", "resume")
}

// TestConformanceExternal is about a runsc that the operator names, which is started
// for each call. Here it is our own executable. It has the groups that call it in
// another way; in the others only the agent is spoken to, which is the same.
func TestConformanceExternal(t *testing.T) {
	tier.Full(t, "TestConformance runs the same runsc, which the provider starts itself")
	providertest.Run(t, func(t *testing.T) cove.Provider {
		path := os.Getenv(runscVariable)
		if path == "" {
			t.Skip("there is no runsc by path: " + runscVariable + " is not set")
		}
		return openWith(t, func(c *gvisor.Config) {
			c.Runsc = path
			c.SetOwn("")
		})
	}, "lifecycle", "pause", "snapshot", "prepare", "attach", "leaks")
}
