//go:build linux

package guest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/guest/agent"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
)

// TestForeign runs the agent of another architecture under an emulator, and
// this machine's programs below it where the emulator can start any: older ones
// lack calls for that.
func TestForeign(t *testing.T) {
	tier.Full(t, "TestConformance uses the agent of this machine; this one runs the agent for arm64 in an emulator")
	if runtime.GOARCH == "arm64" {
		t.Skip("the agent for arm64 is at home here")
	}
	emulator := ""
	for _, name := range []string{"qemu-aarch64-static", "qemu-aarch64"} {
		if path, err := exec.LookPath(name); err == nil {
			emulator = path
		}
	}
	if emulator == "" {
		t.Skip("there is no emulator of arm64; install qemu-user")
	}
	program.Watch(t)
	file := filepath.Join(t.TempDir(), agent.Name)
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, "../../cmd/cove-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH=arm64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, kind := range map[string]int{"descriptors": unix.SOCK_SEQPACKET, "framed": unix.SOCK_STREAM} {
		t.Run(name, func(t *testing.T) { foreign(t, connectForeign(t, emulator, file, kind)) })
	}
}

func connectForeign(t *testing.T, emulator, file string, kind int) *guestAt {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "agent")
	cmd := exec.Command(emulator, "-0", agent.Name, file)
	cmd.ExtraFiles, cmd.Stderr, cmd.Env = []*os.File{theirs}, os.Stderr, agent.Env()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	var tr guest.Transport
	if kind == unix.SOCK_STREAM {
		_ = unix.SetNonblock(fds[0], true)
		tr = guest.Framed(os.NewFile(uintptr(fds[0]), "host"))
	} else if tr, err = guest.Descriptors(fds[0]); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c, err := guest.Connect(t.Context(), tr, guest.Options{Dir: dir, Env: map[string]string{"PATH": "/usr/bin:/bin"}})
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = cmd.Wait()
	})
	return &guestAt{c, dir, cmd}
}

func foreign(t *testing.T, c *guestAt) {
	t.Helper()
	foreignFiles(t, c)
	p, err := c.Start(t.Context(), cove.Command{Argv: []string{"true"}})
	if err == nil {
		r, err := p.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.ExitCode == 0 {
			foreignPrograms(t, c)
			return
		}
	}
	t.Logf("this emulator starts no programs (%v): only files were tested", err)
}

func foreignPrograms(t *testing.T, c *guestAt) {
	t.Helper()
	r, out, errs := run(t, c, cove.Command{Argv: []string{"sh", "-c", "cat; echo err >&2; exit 3"}, Stdin: strings.NewReader("in")})
	if r.ExitCode != 3 || out != "in" || errs != "err\n" {
		t.Errorf("%+v, %q, %q", r, out, errs)
	}
	if r, out, _ := run(t, c, sh("ulimit -Sn; kill -TERM $$")); r.Signal != "TERM" || out != "1024\n" {
		t.Errorf("%+v, %q", r, out)
	}
	p, err := c.Start(t.Context(), sh("setsid sleep 1000 & sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(t.Context()); err != nil {
		t.Error(err)
	}
	if r, err := p.Wait(t.Context()); err != nil || r.Outcome != cove.Killed {
		t.Errorf("%+v, %v", r, err)
	}
}

func foreignFiles(t *testing.T, c *guestAt) {
	t.Helper()
	f := c.Files()
	if err := f.Write(t.Context(), "dir/file", strings.NewReader("text"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := f.Move(t.Context(), "dir/file", "moved"); err != nil {
		t.Error(err)
	}
	if text, err := content(t, c, "moved"); err != nil || text != "text" {
		t.Errorf("%q, %v", text, err)
	}
	i, err := f.Stat(t.Context(), "moved")
	if err != nil || i.Size != 4 || i.Mode.Perm() != 0o640 {
		t.Errorf("%+v, %v", i, err)
	}
	_, err = f.Stat(t.Context(), "missing")
	wants(t, cove.NotFound, err, "a file that is not there")
	a, err := f.Archive(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := f.Unpack(t.Context(), "copy", a); err != nil {
		t.Error(err)
	}
	if text, err := content(t, c, "copy/moved"); err != nil || text != "text" {
		t.Errorf("unpacked %q, %v", text, err)
	}
	if err := f.Remove(t.Context(), "copy"); err != nil {
		t.Error(err)
	}
}
