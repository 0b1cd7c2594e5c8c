//go:build linux

package docker_test

import (
	"testing"

	"github.com/moby/moby/client"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/providertest"
)

func TestConformance(t *testing.T) {
	engineAt(t, "COVE_TEST_DOCKER_HOST")
	providertest.Run(t, func(t *testing.T) cove.Provider { return openOut(t, engineAt(t, "COVE_TEST_DOCKER_HOST")) },
		tier.Pick([]string{"lifecycle", "exec", "volumes", "isolation", "escape", "attach", "dial"})...)
}

// TestConformancePodman is a part of the suite on another engine that speaks the
// same API: what it lacks, the capabilities say.
func TestConformancePodman(t *testing.T) {
	tier.Full(t, "TestConformance uses Docker, with the same client")
	engineAt(t, "COVE_TEST_PODMAN_HOST")
	providertest.Run(t, func(t *testing.T) cove.Provider { return openOut(t, engineAt(t, "COVE_TEST_PODMAN_HOST")) }, parts...)
}

// parts are the groups that say most about an engine.
var parts = []string{"lifecycle", "exec", "limits", "kill", "terminal", "pause", "prepare", "attach", "resume", "egress", "usage"}

// TestConformanceRunsc is a part of the suite in containers that gVisor runs.
func TestConformanceRunsc(t *testing.T) {
	tier.Full(t, "provider/gvisor runs the suite in gVisor")
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	info, err := engineClient(t, cfg.Host).Info(t.Context(), client.InfoOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := info.Info.Runtimes["runsc"]; !ok {
		t.Skip("the engine has no runtime runsc; set COVE_TEST_RUNSC, and scripts/docker.sh gives it one")
	}
	providertest.Run(t, func(t *testing.T) cove.Provider {
		cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
		cfg.Runtime = "runsc"
		p := openAt(t, cfg)
		if caps, err := p.Probe(t.Context()); err != nil || caps.Isolation.Boundary != cove.BoundaryUserKernel {
			t.Errorf("the boundary is %q, %v", caps.Isolation.Boundary, err)
		}
		return p
	}, "exec", "kill", "terminal", "attach")
}
