//go:build linux

package warden_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/gvisor/warden"
)

// real is gVisor, and a place for its sandboxes.
type real struct {
	exe    string
	dir    string
	warden *warden.Warden
}

func newReal(t testing.TB) *real {
	t.Helper()
	exe := os.Getenv("COVE_TEST_RUNSC")
	if exe == "" {
		if slices.Contains(strings.Split(os.Getenv("COVE_REQUIRE"), ","), "gvisor") {
			t.Fatal("COVE_REQUIRE names gvisor, and COVE_TEST_RUNSC does not say where it is")
		}
		t.Skip("gVisor was not built: scripts/gvisor.sh does, and make test says where it is")
	}
	r := &real{exe: exe, dir: t.TempDir()}
	for _, dir := range []string{"run", "bundle/root/usr", "bundle/root/proc", "bundle/root/tmp"} {
		if err := os.MkdirAll(filepath.Join(r.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bin", "lib", "lib64", "sbin"} {
		if err := os.Symlink("usr/"+name, filepath.Join(r.dir, "bundle/root", name)); err != nil {
			t.Fatal(err)
		}
	}
	config, err := json.Marshal(bundle())
	if err == nil {
		err = os.WriteFile(filepath.Join(r.dir, "bundle/config.json"), config, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.warden = warden.New(exe, r.flags()...)
	t.Cleanup(func() { _ = r.warden.Close() })
	return r
}

// bundle is the configuration of a sandbox with the host's programs.
func bundle() map[string]any {
	type object = map[string]any
	linux := object{"namespaces": []object{{"type": "pid"}, {"type": "mount"}, {"type": "network"}, {"type": "ipc"}, {"type": "uts"}}}
	if os.Geteuid() != 0 {
		linux["namespaces"] = append(linux["namespaces"].([]object), object{"type": "user"})
		linux["uidMappings"] = []object{{"containerID": 0, "hostID": os.Geteuid(), "size": 1}}
		linux["gidMappings"] = []object{{"containerID": 0, "hostID": os.Getegid(), "size": 1}}
	}
	return object{
		"ociVersion": "1.0.2",
		"process": object{
			"user": object{"uid": 1000, "gid": 1000}, "args": []string{"/bin/sleep", "1000"}, "env": []string{"PATH=/bin"}, "cwd": "/",
			"noNewPrivileges": true,
		},
		"root": object{"path": "root", "readonly": true},
		"mounts": []object{
			{"destination": "/proc", "type": "proc", "source": "proc"},
			{"destination": "/usr", "type": "bind", "source": "/usr", "options": []string{"bind", "ro"}},
			{"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"},
		},
		"linux": linux,
	}
}

func (r *real) flags() []string {
	return []string{"--root=" + filepath.Join(r.dir, "run"), "--platform=systrap", "--network=none", "--overlay2=none", "--ignore-cgroups", "--gofer-network-namespace=new"}
}

// runsc runs a command of gVisor to its end.
func (r *real) runsc(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), r.exe, append(r.flags(), args...)...)
	cmd.Args[0] = "runsc"
	out := &strings.Builder{}
	// A sandbox would keep a pipe for as long as it lives.
	if args[0] != "run" && args[0] != "restore" {
		cmd.Stdout, cmd.Stderr = out, out
	}
	if err := cmd.Run(); err != nil {
		t.Fatalf("runsc %s: %v\n%s", args[0], err, out)
	}
	return out.String()
}

func (r *real) create(t testing.TB, id string) {
	t.Helper()
	r.runsc(t, "run", "--detach", "--bundle", filepath.Join(r.dir, "bundle"), id)
	t.Cleanup(func() { _ = r.warden.Remove(t.Context(), id) })
}

// enter runs a command in a sandbox and returns what it says.
func (r *real) enter(t testing.TB, id string, admin bool, argv ...string) (string, error) {
	t.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer closeFiles(null, from)
	err = r.warden.Enter(t.Context(), id, warden.Program{Argv: argv, Env: []string{"PATH=/bin"}, Admin: admin}, warden.Streams{In: null, Out: to, Err: to})
	_ = to.Close()
	if err != nil {
		return "", err
	}
	said, err := io.ReadAll(from)
	return strings.TrimSpace(string(said)), err
}

// says fails the test if a command does not say what it should.
func (r *real) says(t testing.TB, id, want, command string) {
	t.Helper()
	if got, err := r.enter(t, id, false, "/bin/sh", "-c", command); err != nil || got != want {
		t.Errorf("%s: %q, %v; want %q", command, got, err, want)
	}
}

// status is that of a sandbox; "" is none.
func (r *real) status(t testing.TB, id string) string {
	t.Helper()
	var all []struct{ ID, Status string }
	if err := json.Unmarshal([]byte(r.runsc(t, "list", "--format=json")), &all); err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.ID == id {
			return s.Status
		}
	}
	return ""
}

// state is what gVisor has written down of a sandbox, and where.
func (r *real) state(t testing.TB, id string) (known map[string]any, path string) {
	t.Helper()
	path = filepath.Join(r.dir, "run", id+"_sandbox:"+id+".state")
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &known)
	}
	if err != nil {
		t.Fatal(err)
	}
	return known, path
}

// sentry is the process of a sandbox.
func (r *real) sentry(t testing.TB, id string) int {
	t.Helper()
	known, _ := r.state(t, id)
	return int(known["sandbox"].(map[string]any)["pid"].(float64))
}

func TestSandbox(t *testing.T) {
	noLeaks(t)
	r := newReal(t)
	r.create(t, "one")
	const caps = "sed -n 's/^Cap...:.//p' /proc/self/status | sort -u | tr '\\n' ' '; id -u; pwd"
	r.says(t, "one", "0000000000000000 0\n/", caps)
	if got, err := r.enter(t, "one", true, "/bin/sh", "-c", "mount -t tmpfs none /tmp && echo kept > /tmp/file && cat /tmp/file"); err != nil || got != "kept" {
		t.Errorf("a mount: %q, %v", got, err)
	}
	r.says(t, "one", "kept", "cat /tmp/file")
	if _, err := r.enter(t, "one", false, "/bin/nothing"); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("a program that is not there: %v", err)
	}

	if err := r.warden.Pause(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.enter(t, "one", false, "/bin/true"); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("it can be entered while it is paused: %v", err)
	}
	if got := r.status(t, "one"); got != "paused" {
		t.Errorf("it is %q", got)
	}
	if err := r.warden.Resume(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	r.says(t, "one", "kept", "cat /tmp/file")

	image := t.TempDir()
	if err := r.warden.Checkpoint(t.Context(), "one", image); err != nil {
		t.Fatal(err)
	}
	r.says(t, "one", "kept", "cat /tmp/file; echo changed > /tmp/file")
	r.runsc(t, "restore", "--detach", "--bundle", filepath.Join(r.dir, "bundle"), "--image-path", image, "two")
	t.Cleanup(func() { _ = r.warden.Remove(t.Context(), "two") })
	r.says(t, "two", "kept", "cat /tmp/file")
	r.says(t, "one", "changed", "cat /tmp/file")

	for _, id := range []string{"one", "two", "one"} {
		if err := r.warden.Remove(t.Context(), id); err != nil {
			t.Errorf("removing %s: %v", id, err)
		}
		if got := r.status(t, id); got != "" {
			t.Errorf("%s is still %s", id, got)
		}
	}
	for name, err := range map[string]error{
		"pause":      r.warden.Pause(t.Context(), "one"),
		"resume":     r.warden.Resume(t.Context(), "one"),
		"checkpoint": r.warden.Checkpoint(t.Context(), "one", t.TempDir()),
	} {
		if cove.CodeOf(err) != cove.NotFound {
			t.Errorf("%s of a sandbox that is gone: %v", name, err)
		}
	}
}

func TestSandboxUser(t *testing.T) {
	newReal(t)
	linuxtest.Again(t, "^(TestSandbox|TestSandboxOutlivesItsWarden|TestSentryKilled)$")
}

func TestSandboxOutlivesItsWarden(t *testing.T) {
	noLeaks(t)
	r := newReal(t)
	r.create(t, "one")
	r.says(t, "one", "", "echo kept > /tmp/file")
	if err := r.warden.Close(); err != nil {
		t.Fatal(err)
	}
	r.warden = warden.New(r.exe, r.flags()...)
	t.Cleanup(func() { _ = r.warden.Close() })
	r.says(t, "one", "kept", "cat /tmp/file")
	if err := r.warden.Remove(t.Context(), "one"); err != nil {
		t.Error(err)
	}
}

// TestSentryKilled: a sandbox that died can be removed, and nobody else dies of it.
func TestSentryKilled(t *testing.T) {
	noLeaks(t)
	r := newReal(t)
	r.create(t, "one")
	known, path := r.state(t, "one")
	if err := syscall.Kill(r.sentry(t, "one"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := r.enter(t, "one", false, "/bin/true"); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("a sandbox that died can be entered: %v", err)
	}

	// As if the number belonged to somebody else by now.
	other := exec.CommandContext(t.Context(), "/bin/sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	known["sandbox"].(map[string]any)["pid"] = other.Process.Pid
	state, err := json.Marshal(known)
	if err == nil {
		err = os.WriteFile(path, state, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := r.warden.Remove(t.Context(), "one"); err != nil {
		t.Errorf("it cannot be removed: %v", err)
	}
	if got := r.status(t, "one"); got != "" {
		t.Errorf("it is %s", got)
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("another process was killed: %v", err)
	}
}

// TestRemoveWhileItHangs: that a call holds the sandbox does not keep it.
func TestRemoveWhileItHangs(t *testing.T) {
	noLeaks(t)
	r := newReal(t)
	r.create(t, "one")
	path := filepath.Join(r.dir, "run", "one_sandbox:one.lock")
	lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	handle, err := unix.PidfdOpen(r.sentry(t, "one"), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(handle) }()
	removed := make(chan error, 1)
	go func() { removed <- r.warden.Remove(t.Context(), "one") }()
	// What holds the lock lets go of it when its sandbox dies: only then do we.
	ready := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}
	for n := 0; n == 0; {
		select {
		case err := <-removed:
			t.Fatalf("it gave up: %v", err)
		default:
		}
		if n, err = unix.Poll(ready, 100); err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
	_ = lock.Close()
	if err := <-removed; err != nil {
		t.Error(err)
	}
	if got := r.status(t, "one"); got != "" {
		t.Errorf("it is %s", got)
	}
}

func BenchmarkEnter(b *testing.B) {
	r := newReal(b)
	r.create(b, "one")
	b.Run("warden", func(b *testing.B) {
		for b.Loop() {
			if _, err := r.enter(b, "one", false, "/bin/true"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("runsc", func(b *testing.B) {
		for b.Loop() {
			r.runsc(b, "exec", "one", "/bin/true")
		}
	})
	if err := r.warden.Remove(b.Context(), "one"); err != nil {
		b.Error(err)
	}
}
