package escape_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

// unprobed is a provider whose probing breaks.
type unprobed struct{ cove.Provider }

func (unprobed) Probe(context.Context) (cove.Capabilities, error) {
	return cove.Capabilities{}, errors.New("no probe")
}

// TestAnOpenDoorIsFound runs what does no harm on a provider without any
// isolation: all of it must get through.
func TestAnOpenDoorIsFound(t *testing.T) {
	dir := shared(t)
	t.Setenv("TMPDIR", dir)
	p := &open{t: t}
	attacks := []string{
		"read_outside", "write_outside", "submounts", "file_names", "kernel_files", "namespaces", "identity", "host_loopback", "host_sockets", "host_abstract_sockets",
		"environment_leak", "other_processes", "fork_bomb", "zombie_bomb", "disk_bomb", "inode_bomb", "survivors_kill", "survivors_sibling", "output_flood",
		"volume_writes", "volume_links", "volume_symlinks", "volume_names", "workspace_bytes", "workspace_files", "workspace_holes",
	}
	for f, err := range escape.Run(t.Context(), p, escape.Options{Only: attacks}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case f.Via == escape.Terminal && f.Skipped == "":
			t.Errorf("%s was tried on a terminal, which there is none of", f.Attack)
		case f.Skipped == "" && !f.GotThrough():
			t.Errorf("%s was stopped by %q", f.Attack, f.By)
		}
		t.Logf("%s by %s: %s%s%s", f.Attack, f.Via, f.By, f.Detail, f.Skipped)
	}
	if p.boxes != 0 {
		t.Errorf("%d sandboxes are left", p.boxes)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// collect runs attacks and returns the findings, and the error at the end.
func collect(t *testing.T, p cove.Provider, o escape.Options) ([]escape.Finding, error) {
	t.Helper()
	var found []escape.Finding
	for f, err := range escape.Run(t.Context(), p, o) {
		if err != nil {
			return found, err
		}
		found = append(found, f)
	}
	return found, nil
}

func TestWhatIsNotPromisedIsNotTried(t *testing.T) {
	for what, c := range map[string]struct {
		caps func(*cove.Capabilities)
		only string
		word string
	}{
		"a soft limit":        {func(c *cove.Capabilities) { c.Isolation.PIDs = cove.Soft }, "fork_bomb", "the limit on pids is soft here"},
		"no limit":            {func(c *cove.Capabilities) { c.Isolation.Network = "" }, "host_loopback", "the limit on network is none here"},
		"a soft workspace":    {func(c *cove.Capabilities) { c.Workspaces[cove.WorkspaceMemory] = cove.Quota{Bytes: cove.Soft} }, "disk_bomb", "the limit on disk is soft here"},
		"a kernel of its own": {func(c *cove.Capabilities) { c.Isolation.Boundary = cove.BoundaryMicroVM }, "io_uring", "a kernel of its own"},
		"no boundary":         {func(c *cove.Capabilities) { c.Isolation.Boundary = cove.BoundaryNone }, "read_outside", "the boundary is none"},
	} {
		found, err := collect(t, &open{t: t, caps: c.caps}, escape.Options{Only: []string{c.only}, Via: []escape.Via{escape.Exec}})
		if err != nil || len(found) != 1 {
			t.Errorf("%s: %+v, %v", what, found, err)
		}
		for _, f := range found {
			if !strings.Contains(f.Skipped, c.word) || f.Held || f.GotThrough() {
				t.Errorf("%s: %+v", what, f)
			}
		}
	}
}

// bare is a provider without a network.
type bare struct{ cove.Provider }

func (b bare) Probe(ctx context.Context) (cove.Capabilities, error) {
	c, err := b.Provider.Probe(ctx)
	c.Networks = []cove.NetworkMode{cove.NetworkNone}
	return c, err
}

func TestAttackerThatDoesNotAnswer(t *testing.T) {
	for attacker, word := range map[string]string{"/bin/true": "does not answer in a sandbox", "/nonexistent": "cannot be read"} {
		_, err := collect(t, &open{t: t}, escape.Options{Attacker: attacker, Only: []string{"read_outside"}})
		if cove.CodeOf(err) != cove.Unavailable || !strings.Contains(cove.MessageOf(err), word) {
			t.Errorf("%s: %v", attacker, err)
		}
	}
}

// TestNobodyCanTell: what cannot be judged counts as got through.
func TestNobodyCanTell(t *testing.T) {
	mute := func(cmd cove.Command, c *exec.Cmd) {
		if !slices.Contains(cmd.Argv, "hello") {
			c.Path, c.Args = "/bin/true", []string{"true"}
		}
	}
	missing := func(cmd cove.Command, c *exec.Cmd) {
		if !slices.Contains(cmd.Argv, "hello") {
			c.Path, c.Err = "/nonexistent", nil
		}
	}
	attacks := []string{
		"read_outside", "submounts", "identity", "core_dumps", "descriptor_leak", "other_processes", "survivors_timeout", "survivors_sibling", "output_flood",
		"fork_bomb", "memory_bomb", "memory_files", "memory_beside_files", "disk_bomb", "inode_bomb", "agent_signals", "link_race", "volume_writes", "workspace_holes",
		"workspace_device",
	}
	for what, run := range map[string]func(cove.Command, *exec.Cmd){"says nothing": mute, "cannot start": missing} {
		only := slices.DeleteFunc(slices.Clone(attacks), func(attack string) bool {
			return what == "says nothing" && slices.Contains([]string{"identity", "other_processes", "link_race"}, attack) // they wait for a word
		})
		found, err := collect(t, &open{t: t, run: run}, escape.Options{Only: only, Via: []escape.Via{escape.Exec}})
		if err != nil || len(found) != len(only) {
			t.Errorf("%d findings, %v", len(found), err)
		}
		for _, f := range found {
			if !f.GotThrough() {
				t.Errorf("a program that %s: %+v", what, f)
			}
		}
	}
}

func TestEnoughIsEnough(t *testing.T) {
	p := &open{t: t}
	n := 0
	for range escape.Run(t.Context(), p, escape.Options{}) {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 || p.boxes != 0 {
		t.Errorf("%d findings, %d sandboxes left", n, p.boxes)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for f, err := range escape.Run(ctx, p, escape.Options{}) {
		if cove.CodeOf(err) != cove.Canceled {
			t.Errorf("%+v, %v", f, err)
		}
	}
	if p.boxes != 0 {
		t.Errorf("%d sandboxes left", p.boxes)
	}
}

func TestSandboxThatCannotBeMade(t *testing.T) {
	p := &open{t: t}
	refusing := refusing{p}
	if _, err := collect(t, refusing, escape.Options{Only: []string{"read_outside"}}); cove.CodeOf(err) != cove.Exhausted {
		t.Errorf("the error is %v", err)
	}
	if _, err := collect(t, refusing, escape.Options{Only: []string{"fork_bomb"}}); cove.CodeOf(err) != cove.Exhausted {
		t.Errorf("the error is %v", err)
	}
}

// coarse is a provider that promises to hold all limits, and refuses some.
type coarse struct {
	*open

	least float64 // CPUs; 0 is none at all
	asked []float64
}

func (c *coarse) Create(_ context.Context, _ cove.ID, s cove.Spec) (cove.Sandbox, error) {
	c.asked = append(c.asked, s.Resources.CPUs)
	if c.least == 0 || s.Resources.CPUs < c.least {
		return nil, cove.Errorf(cove.Unsupported, "not so little").Reason(cove.ReasonLimitNotEnforced)
	}
	return nil, cove.Errorf(cove.Exhausted, "no room")
}

// TestARefusalIsNoDefence has a promise that is broken by refusing: it counts as an
// attack that got through. An amount that is only too fine is asked for anew.
func TestARefusalIsNoDefence(t *testing.T) {
	for _, attack := range []string{"fork_bomb", "cpu_hog"} {
		found, err := collect(t, &coarse{open: &open{t: t}}, escape.Options{Only: []string{attack}, Via: []escape.Via{escape.Exec}})
		if err != nil || len(found) != 1 || !found[0].GotThrough() || !strings.Contains(found[0].Detail, "promises") {
			t.Errorf("%s: %+v, %v", attack, found, err)
		}
	}
	whole := &coarse{open: &open{t: t}, least: 1}
	found, err := collect(t, whole, escape.Options{Only: []string{"cpu_hog"}})
	if cove.CodeOf(err) != cove.Exhausted || !slices.Equal(whole.asked, []float64{0.25, 1}) {
		t.Errorf("%+v, %v, asked for %v", found, err, whole.asked)
	}
}

// refusing makes no sandboxes.
type refusing struct{ *open }

func (refusing) Create(context.Context, cove.ID, cove.Spec) (cove.Sandbox, error) {
	return nil, cove.Errorf(cove.Exhausted, "no room")
}
