//go:build linux

package docker_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/docker"
)

// inspect is what the engine says of a sandbox's container.
func inspect(t *testing.T, host string, id cove.ID) container.InspectResponse {
	t.Helper()
	found, err := engineClient(t, host).ContainerInspect(t.Context(), "cove-"+string(id), client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found.Container
}

// TestHardening is about what the engine is told to fence a sandbox in with.
func TestHardening(t *testing.T) {
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	p := openAt(t, cfg)
	t.Cleanup(func() { _ = p.Close() })
	s := create(t, p, cove.Spec{
		Resources: cove.Resources{CPUs: 0.5, Memory: 128 * cove.MiB, PIDs: 32}, Workspace: cove.Workspace{Size: 8 * cove.MiB, Files: 99},
	})
	c := inspect(t, cfg.Host, s.ID())
	type walls struct {
		User, Network, Ipc, Log, Restart string
		ReadOnly, Privileged, AutoRemove bool
		Init                             bool
		CapAdd, CapDrop, Security        []string
		Memory, Swap, CPU, PIDs          int64
		Workspace                        string
		Binds                            int
		Masked                           bool
	}
	h := c.HostConfig
	got := walls{
		User: c.Config.User, Network: string(h.NetworkMode), Ipc: string(h.IpcMode), Log: h.LogConfig.Type, Restart: string(h.RestartPolicy.Name),
		ReadOnly: h.ReadonlyRootfs, Privileged: h.Privileged, AutoRemove: h.AutoRemove, Init: h.Init != nil && *h.Init,
		CapAdd: h.CapAdd, CapDrop: h.CapDrop, Security: h.SecurityOpt, Memory: h.Memory, Swap: h.MemorySwap, CPU: h.NanoCPUs, PIDs: *h.PidsLimit,
		Workspace: h.Tmpfs["/workspace"], Binds: len(h.Binds), Masked: slices.Contains(h.MaskedPaths, "/proc/kcore"),
	}
	want := walls{
		User: "1000:1000", Network: "none", Ipc: "private", Log: "none", Restart: "no", ReadOnly: true,
		CapDrop: []string{"ALL"}, Security: []string{"no-new-privileges"}, Memory: 128 << 20, Swap: 128 << 20, CPU: 500_000_000, PIDs: 32 + 22,
		Workspace: "rw,exec,nosuid,nodev,size=8388608,uid=1000,gid=1000,mode=0755,nr_inodes=100", Masked: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the walls (-want +got):\n%s", diff)
	}
	for _, m := range c.Mounts {
		if m.Destination == "/cove" && (m.RW || m.Type != "volume") {
			t.Errorf("the agent can be written to: %+v", m)
		}
	}
	status := output(t, s, "grep -E '^(CapPrm|CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t\\n'; id -u")
	if want := "CapPrm:0000000000000000CapEff:0000000000000000CapBnd:0000000000000000NoNewPrivs:1Seccomp:2" + "1000\n"; status != want {
		t.Errorf("a program has %q; want %q", status, want)
	}
}

// TestSpareBecomesSandbox is about spares that are made with what was asked for last,
// and so need not be made anew.
func TestSpareBecomesSandbox(t *testing.T) {
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	p := openAt(t, cfg)
	t.Cleanup(func() { _ = p.Close() })
	small := cove.Spec{Resources: cove.Resources{Memory: 96 * cove.MiB, PIDs: 40}, Workspace: cove.Workspace{Kind: cove.WorkspaceMemory, Size: 4 * cove.MiB}}
	mold := cove.Mold{Provider: "docker", Template: docker.Base, Workspace: cove.WorkspaceMemory}
	if err := create(t, p, small).Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	only := func() string {
		names := mine(t, cfg.Host, cfg.Dir)
		if len(names) != 1 {
			t.Fatalf("the containers are %v", names)
		}
		return strings.TrimPrefix(names[0], "/")
	}
	for name, c := range map[string]struct {
		change func(*cove.Spec)
		same   bool // the container stays
	}{
		"as asked for last": {func(*cove.Spec) {}, true},
		"with less memory":  {func(s *cove.Spec) { s.Resources.Memory = 64 * cove.MiB }, true},
		"without a limit":   {func(s *cove.Spec) { s.Resources.PIDs = 0 }, false},
		"with more room":    {func(s *cove.Spec) { s.Workspace.Size = 8 * cove.MiB }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := create(t, p, small).Destroy(t.Context()); err != nil { // as last
				t.Fatal(err)
			}
			spare, err := p.Prepare(t.Context(), mold)
			if err != nil {
				t.Fatal(err)
			}
			was, err := engineClient(t, cfg.Host).ContainerInspect(t.Context(), only(), client.ContainerInspectOptions{})
			if err != nil {
				t.Fatal(err)
			}
			spec := small
			c.change(&spec)
			s, err := spare.Claim(t.Context(), cove.NewID(), spec)
			if err != nil {
				t.Fatal(err)
			}
			is := inspect(t, cfg.Host, s.ID())
			if (is.ID == was.Container.ID) != c.same || is.HostConfig.Memory != int64(spec.Resources.Memory) {
				t.Errorf("the same container: %t; want %t; its memory is %d", is.ID == was.Container.ID, c.same, is.HostConfig.Memory)
			}
			if err := s.Destroy(t.Context()); err != nil {
				t.Error(err)
			}
			nothingLeft(t, cfg.Host, cfg.Dir)
		})
	}
}

// TestSparesOfTheDead is about spares that a process left that was killed.
func TestSparesOfTheDead(t *testing.T) {
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	dead := openAt(t, cfg)
	if _, err := dead.Prepare(t.Context(), cove.Mold{Provider: "docker", Template: docker.Base, Workspace: cove.WorkspaceMemory}); err != nil {
		t.Fatal(err)
	}
	p := openAt(t, cfg)
	if err := create(t, p, cove.Spec{}).Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, cfg.Host, cfg.Dir)
	for _, p := range []*docker.Provider{p, dead} {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSparesOfTheDeadAreNotKept is about a process that only looks what there is.
func TestSparesOfTheDeadAreNotKept(t *testing.T) {
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	dead := openAt(t, cfg)
	if _, err := dead.Prepare(t.Context(), cove.Mold{Provider: "docker", Template: docker.Base, Workspace: cove.WorkspaceMemory}); err != nil {
		t.Fatal(err)
	}
	p := openAt(t, cfg)
	for id, err := range p.List(t.Context()) {
		t.Errorf("there is %s, %v", id, err)
	}
	nothingLeft(t, cfg.Host, cfg.Dir)
	for _, p := range []*docker.Provider{p, dead} {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSpareWhoseEngineWasAway is about a spare that was to end while nobody answered.
func TestSpareWhoseEngineWasAway(t *testing.T) {
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	host := cfg.Host
	socket, ok := strings.CutPrefix(host, "unix://")
	if !ok {
		t.Skip("the engine has no socket here")
	}
	near := filepath.Join(t.TempDir(), "docker.sock")
	cfg.Host = "unix://" + near
	if err := os.Symlink(socket, near); err != nil {
		t.Fatal(err)
	}
	p := openAt(t, cfg)
	t.Cleanup(func() { _ = p.Close() })
	spare, err := p.Prepare(t.Context(), cove.Mold{Provider: "docker", Template: docker.Base, Workspace: cove.WorkspaceMemory})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(near); err != nil {
		t.Fatal(err)
	}
	p.Hangup()
	if err := spare.Discard(t.Context()); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("an engine that is away: %v", err)
	}
	if err := os.Symlink(socket, near); err != nil {
		t.Fatal(err)
	}
	for id, err := range p.List(t.Context()) {
		t.Errorf("there is %s, %v", id, err)
	}
	nothingLeft(t, host, cfg.Dir)
}

// TestPausedOverARestart is about a sandbox that is paused when another process
// takes it up.
func TestPausedOverARestart(t *testing.T) {
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	p := openAt(t, cfg)
	s := create(t, p, cove.Spec{})
	pauser, _ := cove.As[cove.Pauser](s)
	if err := pauser.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if u, err := s.Usage(t.Context()); err != nil || u.Memory == 0 {
		t.Errorf("usage while paused: %+v, %v", u, err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = openAt(t, cfg)
	t.Cleanup(func() { _ = p.Close() })
	again, err := p.Attach(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if c := inspect(t, cfg.Host, s.ID()); c.State.Paused {
		t.Error("the sandbox is still paused, and its agent cannot say which programs it keeps")
	}
	if got := output(t, again, "echo on"); got != "on\n" {
		t.Errorf("after that it prints %q", got)
	}
	if err := again.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, cfg.Host, cfg.Dir)
}

// TestOpenNetwork is there where a setting says so.
func TestOpenNetwork(t *testing.T) {
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	cfg.Network = true
	p := openAt(t, cfg)
	t.Cleanup(func() { _ = p.Close() })
	caps, err := p.Probe(t.Context())
	if err != nil || !slices.Contains(caps.Networks, cove.NetworkOpen) {
		t.Errorf("the networks are %v, %v", caps.Networks, err)
	}
	// The engine of tests has no network of its own; where there is one, nobody
	// watches it.
	s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Network: cove.Network{Mode: cove.NetworkOpen}})
	if err != nil {
		return
	}
	if out, ok := cove.As[cove.Egress](s); !ok || s.Isolation().Network != cove.Absent || cove.CodeOf(out.SetNetwork(t.Context(), cove.Network{Mode: cove.NetworkOpen})) != cove.Unsupported {
		t.Errorf("network open is reported as %+v", s.Isolation())
	} else {
		for _, err := range out.Connections(t.Context(), 0) {
			if cove.CodeOf(err) != cove.Unsupported {
				t.Errorf("the log of a network that nobody watches gives %v", err)
			}
		}
	}
	if err := s.Destroy(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

// TestBadDirectory is about a directory that cannot be used.
func TestBadDirectory(t *testing.T) {
	if _, err := docker.New(docker.Config{}); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("no directory gives %v", err)
	}
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.Dir = filepath.Join(file, "dir")
	p := openAt(t, cfg)
	t.Cleanup(func() { _ = p.Close() })
	if _, err := p.Create(t.Context(), cove.NewID(), cove.Spec{}); cove.CodeOf(err) != cove.Unavailable || cove.RemedyOf(err) == "" {
		t.Errorf("a directory that cannot be made gives %v", err)
	}
}

// TestClosed is about a provider that was closed.
func TestClosed(t *testing.T) {
	p, err := docker.New(docker.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	id := cove.NewID()
	for what, err := range map[string]error{
		"Probe": second(p.Probe(t.Context())), "Create": second(p.Create(t.Context(), id, cove.Spec{})), "Attach": second(p.Attach(t.Context(), id)),
		"Remove": p.Remove(t.Context(), id), "Prepare": second(p.Prepare(t.Context(), cove.Mold{})),
	} {
		if cove.CodeOf(err) != cove.Unavailable {
			t.Errorf("%s gives %v", what, err)
		}
	}
	for _, err := range p.List(t.Context()) {
		if cove.CodeOf(err) != cove.Unavailable {
			t.Errorf("List gives %v", err)
		}
	}
}

// TestVolumeOverTheAgent is about volumes that would take the place of what a
// container needs: the agent, which is root when it is a door.
func TestVolumeOverTheAgent(t *testing.T) {
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	p := openAt(t, cfg)
	defer func() { _ = p.Close() }()
	fake := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\nid > /tmp/was-here\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"/cove", "/cove/cove-agent", "/cove/more", "/tmp", "/tmp/.cove"} {
		s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Volumes: []cove.Volume{{Source: fake, Target: target}}})
		if cove.CodeOf(err) != cove.Invalid || !strings.Contains(cove.MessageOf(err), "volumes") {
			t.Errorf("a volume at %s gives %v", target, err)
		}
		if err == nil {
			_ = s.Destroy(t.Context())
		}
	}
	nothingLeft(t, cfg.Host, cfg.Dir)
}
