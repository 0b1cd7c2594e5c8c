//go:build linux

package docker_test

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/docker"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// patience bounds what must happen.
const patience = time.Minute

// engineClient speaks to an engine beside the provider.
func engineClient(t *testing.T, host string) *client.Client {
	t.Helper()
	c, err := client.New(client.WithHost(host))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// mine are the names of the containers of a provider.
func mine(t *testing.T, host, dir string) []string {
	t.Helper()
	owner, err := os.ReadFile(filepath.Join(dir, "owner"))
	if err != nil {
		return nil // it never had one
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	list, err := engineClient(t, host).ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", "dev.cove.owner="+string(owner))})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range list.Items {
		names = append(names, c.Names...)
	}
	return names
}

// volumes are the names of the workspaces on disk of a provider.
func volumes(t *testing.T, host, dir string) (names []string) {
	t.Helper()
	owner, err := os.ReadFile(filepath.Join(dir, "owner"))
	if err != nil {
		return nil // it never had one
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	list, err := engineClient(t, host).VolumeList(ctx, client.VolumeListOptions{Filters: client.Filters{}.Add("label", "dev.cove.owner="+string(owner))})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range list.Items {
		names = append(names, v.Name)
	}
	return names
}

// nothingLeft demands that a provider has no container, no volume, no note and no
// draft.
func nothingLeft(t *testing.T, host, dir string) {
	t.Helper()
	if names := mine(t, host, dir); len(names) > 0 {
		t.Errorf("containers are left: %v", names)
	}
	if names := volumes(t, host, dir); len(names) > 0 {
		t.Errorf("volumes are left: %v", names)
	}
	for _, sub := range []string{"boxes", "snapshots"} {
		if left, _ := os.ReadDir(filepath.Join(dir, sub)); len(left) > 0 {
			t.Errorf("files are left in %s: %v", sub, left)
		}
	}
}

// sleeper starts a program that does not end.
func sleeper(t *testing.T, s cove.Sandbox) cove.Process {
	t.Helper()
	p, err := s.Start(t.Context(), cove.Command{Argv: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// lost demands how a program ends whose sandbox is gone.
func lost(t *testing.T, p cove.Process, code cove.Code, text, remedy string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := p.Wait(ctx)
	if cove.CodeOf(err) != code || !strings.Contains(cove.MessageOf(err), text) || !strings.Contains(cove.RemedyOf(err), remedy) {
		t.Errorf("the program ends with %v, remedy %q; want code %s, %q and %q", err, cove.RemedyOf(err), code, text, remedy)
	}
}

// died demands that a sandbox says that it is lost.
func died(t *testing.T, s cove.Sandbox) {
	t.Helper()
	m, ok := cove.As[cove.Mortal](s)
	if !ok {
		t.Fatal("the sandbox cannot say that it died")
	}
	select {
	case <-m.Died():
	case <-time.After(patience):
		t.Error("the sandbox does not say that it died")
	}
}

func create(t *testing.T, p *docker.Provider, spec cove.Spec) cove.Sandbox {
	t.Helper()
	s, err := p.Create(t.Context(), cove.NewID(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// A test may have closed the provider, and looks after it then.
		if err := p.Remove(context.WithoutCancel(t.Context()), s.ID()); cove.CodeOf(err) != cove.Unavailable && err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestImageMissing(t *testing.T) {
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	cfg.Image = "no-such-image:ever"
	refused(t, cfg, "no-such-image:ever is not on the Docker engine", "docker build")
	nothingLeft(t, cfg.Host, cfg.Dir)
}

func TestRuntimeMissing(t *testing.T) {
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	cfg.Runtime = "no-such-runtime"
	refused(t, cfg, "no runtime no-such-runtime; it has ", "DOCKER_RUNTIME")
}

// TestRemovedBehindOurBack is about a container that somebody else ended.
func TestRemovedBehindOurBack(t *testing.T) {
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	p := openAt(t, cfg)
	t.Cleanup(func() { _ = p.Close() })
	engine := engineClient(t, cfg.Host)
	for name, end := range map[string]func(box string) error{
		"removed": func(c string) error {
			_, err := engine.ContainerRemove(t.Context(), c, client.ContainerRemoveOptions{Force: true})
			return err
		},
		"killed": func(c string) error {
			_, err := engine.ContainerKill(t.Context(), c, client.ContainerKillOptions{Signal: "KILL"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := create(t, p, cove.Spec{})
			prog := sleeper(t, s)
			if err := end("cove-" + string(s.ID())); err != nil {
				t.Fatal(err)
			}
			lost(t, prog, cove.NotFound, "by somebody else", "open a new one")
			died(t, s)
			if _, err := s.Start(t.Context(), cove.Command{Argv: []string{"true"}}); cove.CodeOf(err) != cove.NotFound {
				t.Errorf("Start gives %v", err)
			}
			if err := s.Destroy(t.Context()); err != nil {
				t.Error(err)
			}
			nothingLeft(t, cfg.Host, cfg.Dir)
		})
	}
	t.Run("while there was no server", func(t *testing.T) {
		s := create(t, p, cove.Spec{})
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := engine.ContainerRemove(t.Context(), "cove-"+string(s.ID()), client.ContainerRemoveOptions{Force: true}); err != nil {
			t.Fatal(err)
		}
		p = openAt(t, cfg)
		if _, err := p.Attach(t.Context(), s.ID()); cove.CodeOf(err) != cove.NotFound {
			t.Errorf("Attach gives %v", err)
		}
		for id, err := range p.List(t.Context()) {
			if err != nil || id != s.ID() {
				t.Fatalf("List gives %s, %v", id, err)
			}
			if err := p.Remove(t.Context(), id); err != nil {
				t.Error(err)
			}
		}
		nothingLeft(t, cfg.Host, cfg.Dir)
	})
}

// privateEngine starts a daemon that the test may break, in a directory that on
// mounts something over, if it is there.
func privateEngine(t *testing.T, on func(t *testing.T, dir string)) (host, dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can start an engine")
	}
	if _, err := exec.LookPath("dockerd"); err != nil {
		t.Skip("dockerd is not installed (docker.io)")
	}
	top, err := os.MkdirTemp("/var/tmp", "cove-dk-*") //nolint:usetesting // names of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(top); err != nil {
			t.Error(err)
		}
	})
	if on != nil {
		on(t, top)
		t.Cleanup(func() {
			if err := unix.Unmount(top, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	}
	dir = filepath.Join(top, "d")
	t.Cleanup(func() {
		if out, err := exec.Command("../../scripts/docker.sh", "stop", dir).CombinedOutput(); err != nil {
			t.Errorf("stop the engine: %v\n%s", err, out)
		}
	})
	return startEngine(t, dir), dir
}

// small is a file system with little room.
func small(t *testing.T, dir string) {
	t.Helper()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=96m"); err != nil {
		t.Skipf("a file system of its own: %v", err)
	}
}

func startEngine(t *testing.T, dir string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../../scripts/docker.sh", "start", dir)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("start an engine: %v\n%s", err, said.String())
	}
	return strings.TrimSpace(string(out))
}

// tinyImage puts an image into an engine that holds next to nothing: the agent
// needs nothing else.
func tinyImage(t *testing.T, host string) {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range []string{"workspace/", "tmp/", "cove/", "proc/", "sys/", "dev/", "etc/"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := engineClient(t, host).ImageImport(t.Context(), client.ImageImportSource{Source: &b, SourceName: "-"}, testImage, client.ImageImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, r)
	_ = r.Close()
}

// private is the config for an engine of the test's own.
func private(t *testing.T, on func(t *testing.T, dir string)) (cfg docker.Config, dir string) {
	t.Helper()
	cfg = engineAt(t, "COVE_TEST_DOCKER_HOST") // where there is none, this cannot be had either
	cfg.Host, dir = privateEngine(t, on)
	tinyImage(t, cfg.Host)
	return cfg, dir
}

// TestDaemonKilled kills the engine in the middle of a run, and starts it again.
func TestDaemonKilled(t *testing.T) {
	cfg, dir := private(t, nil)
	p := openAt(t, cfg)
	t.Cleanup(func() { _ = p.Close() })
	s := create(t, p, cove.Spec{})
	watching, waiting := make(chan struct{}), make(chan error, 1)
	go func() {
		var last error
		for c, err := range s.Files().Watch(t.Context(), ".") {
			if last = err; c.Kind == cove.Watching {
				close(watching)
			}
		}
		waiting <- last
	}()
	select {
	case <-watching:
	case err := <-waiting:
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "docker.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	died(t, s)
	if err := <-waiting; cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("a call that waited ends with %v", err)
	}
	for what, err := range map[string]error{
		"Start":   second(s.Start(t.Context(), cove.Command{Argv: []string{"true"}})),
		"Create":  second(p.Create(t.Context(), cove.NewID(), cove.Spec{})),
		"Destroy": s.Destroy(t.Context()),
	} {
		if cove.CodeOf(err) != cove.Unavailable || cove.MessageOf(err) != "Docker daemon not available" || cove.RemedyOf(err) != "Set SANDBOX_TYPE=local or start Docker daemon" {
			if what != "Start" || cove.CodeOf(err) != cove.NotFound { // Destroy may have been first
				t.Errorf("%s gives %v, remedy %q", what, err, cove.RemedyOf(err))
			}
		}
	}
	if caps, err := p.Probe(t.Context()); err != nil || caps.Ready || caps.Why != "Docker daemon not available" {
		t.Errorf("probe: %+v, %v", caps, err)
	}
	stopRest(t, dir)
	startEngine(t, dir)
	providertest.Ready(t, p)
	if err := s.Destroy(t.Context()); err != nil {
		t.Errorf("Destroy after a restart: %v", err)
	}
	again := create(t, p, cove.Spec{})
	if err := again.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, cfg.Host, cfg.Dir)
}

func second[T any](_ T, err error) error { return err }

// stopRest ends what a daemon that was killed left running, so that another can
// start on its directory: its helpers, and the containers.
func stopRest(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", `source ../../scripts/engine-lib.sh && engine_kill "$1"`, "stopRest", dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the rest of an engine does not end: %v: %s", err, out)
	}
}

// TestDiskFull is about an engine without room.
func TestDiskFull(t *testing.T) {
	cfg, dir := private(t, small)
	p := openAt(t, cfg)
	t.Cleanup(func() { _ = p.Close() })
	fill := filepath.Join(dir, "fill")
	f, err := os.Create(fill)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, zeros{}); err == nil {
		t.Fatal("the disk does not fill up")
	}
	_ = f.Close()
	_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{})
	if cove.CodeOf(err) != cove.Exhausted || cove.ReasonOf(err) != cove.ReasonCapacity || !strings.Contains(cove.RemedyOf(err), "docker system prune") {
		t.Errorf("Create on a full disk gives %v, remedy %q", err, cove.RemedyOf(err))
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, cfg.Host, cfg.Dir)
	if err := create(t, p, cove.Spec{}).Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, cfg.Host, cfg.Dir)
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }
