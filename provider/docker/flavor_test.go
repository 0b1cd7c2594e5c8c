//go:build linux

package docker_test

import (
	"strings"
	"testing"

	"github.com/moby/moby/api/types/system"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/docker"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// TestMemoryIsOneNumber: the bound of the control group is the memory that was asked for,
// with a workspace in memory, and the group around it bounds all sandboxes together.
func TestMemoryIsOneNumber(t *testing.T) {
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	const around, together = "covetest-around-docker", 3 * cove.GiB
	cfg.Around, cfg.Together = around, together
	linuxtest.NoLeaks(t, around)
	p, err := docker.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	providertest.OneMemory(t, p, func(memory cove.Bytes) { linuxtest.OneMemoryBound(t, around, int64(together), int64(memory)) })
}

// TestNoBoundTogether: an engine whose containers cannot be in a group of ours is used,
// and the reason is told.
func TestNoBoundTogether(t *testing.T) {
	linuxtest.NeedRoot(t)
	const around = "covetest-around-engines"
	linuxtest.NoLeaks(t, around)
	fits := system.Info{CgroupDriver: "cgroupfs"}
	for name, c := range map[string]struct {
		local, podman, misplaced bool
		info                     system.Info
		why                      string
	}{
		"a good one":            {true, false, false, fits, ""},
		"elsewhere":             {false, false, false, fits, "elsewhere"},
		"Podman":                {true, true, false, fits, "Podman"},
		"systemd":               {true, false, false, system.Info{CgroupDriver: "systemd"}, "systemd"},
		"without root":          {true, false, false, system.Info{CgroupDriver: "cgroupfs", SecurityOptions: []string{"name=rootless"}}, "without root"},
		"with groups elsewhere": {true, false, true, fits, "not those of this process"},
	} {
		p, err := docker.New(docker.Config{Dir: t.TempDir(), Around: around, Together: cove.GiB})
		if err != nil {
			t.Fatal(err)
		}
		parent, notes := p.Apart(c.local, c.podman, c.misplaced, c.info)
		if c.why == "" && (!strings.HasSuffix(parent, "/"+around+"/docker") || len(notes) > 0) {
			t.Errorf("%s: containers are made in %q: %q", name, parent, notes)
		}
		if c.why != "" && (parent != "" || len(notes) != 1 || !strings.Contains(notes[0], c.why)) {
			t.Errorf("%s: containers are made in %q: %q", name, parent, notes)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
