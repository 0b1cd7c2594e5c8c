//go:build linux

package docker_test

import (
	"context"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/docker"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// TestMemoryIsOneNumber: the bound of the control group is the memory that was asked for,
// with a workspace in memory, and the group around it bounds all sandboxes together.
func TestMemoryIsOneNumber(t *testing.T) {
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	const around, together, memory = "covetest-around-docker", 3 * cove.GiB, 256 * cove.MiB
	cfg.Around, cfg.Together = around, together
	linuxtest.NoLeaks(t, around)
	p, err := docker.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	providertest.Ready(t, p)
	for name, w := range map[string]cove.Workspace{"usual": {}, "large": {Size: 160 * cove.MiB}} {
		s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Resources: cove.Resources{Memory: memory}, Workspace: w})
		if err != nil {
			t.Fatal(err)
		}
		if s.Isolation().Memory == cove.Hard {
			linuxtest.OneMemoryBound(t, around, int64(together), int64(memory))
		} else {
			t.Logf("%s: the bound on memory is %s", name, s.Isolation().Memory)
		}
		if err := s.Destroy(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}
