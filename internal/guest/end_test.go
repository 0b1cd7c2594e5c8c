//go:build linux

package guest_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
)

func TestAgentDies(t *testing.T) {
	everywhere(t, func(t *testing.T, c *guestAt) {
		p, err := c.Start(t.Context(), cove.Command{Argv: []string{"sleep", "1000"}, Stdout: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		watching := make(chan error, 1)
		ready := make(chan struct{})
		go func() {
			for change, err := range c.Files().Watch(t.Context(), ".") {
				if change.Kind == cove.Watching {
					close(ready)
				}
				if err != nil {
					watching <- err
				}
			}
			close(watching)
		}()
		<-ready
		if err := syscall.Kill(c.cmd.Process.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-c.Done()
		_, err = p.Wait(t.Context())
		wants(t, cove.Unavailable, err, "Wait")
		wants(t, cove.Unavailable, <-watching, "Watch")
		_, err = c.Start(t.Context(), cove.Command{Argv: []string{"true"}})
		wants(t, cove.Unavailable, err, "Start")
		_, err = c.Files().Stat(t.Context(), ".")
		wants(t, cove.Unavailable, err, "Stat")
		_, err = c.Files().Archive(t.Context(), ".")
		wants(t, cove.Unavailable, err, "Archive")
		wants(t, cove.Unavailable, c.Files().Write(t.Context(), "x", strings.NewReader("x"), 0), "Write")
		wants(t, cove.NotFound, p.Signal(t.Context(), "TERM"), "Signal")
		wants(t, cove.Unavailable, c.Ping(t.Context()), "Ping")
		if c.dir != cove.WorkspacePath {
			// Nobody is left who would end it for us.
			t.Cleanup(func() { killOrphans(t) })
		}
	})
}

// killOrphans ends the sleepers of an agent that was killed without namespaces:
// they are children of nobody, and known by what they run in.
func killOrphans(t *testing.T) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		cwd, _ := os.Readlink("/proc/" + e.Name() + "/cwd")
		if string(line) == "sleep\x001000\x00" && strings.Contains(cwd, t.Name()[:12]) {
			var pid int
			if _, err := fmt.Sscan(e.Name(), &pid); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

func TestClose(t *testing.T) {
	everywhere(t, func(t *testing.T, c *guestAt) {
		p, err := c.Start(t.Context(), cove.Command{Argv: []string{"cat"}, Stdin: neverReader{t.Context().Done()}, Stdout: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := p.Wait(t.Context())
		if err != nil || r.Outcome != cove.Killed || r.ExitCode != 137 || r.Signal != "KILL" {
			t.Errorf("%+v, %v", r, err)
		}
		if err := p.Kill(t.Context()); err != nil {
			t.Error(err)
		}
		_, err = c.Start(t.Context(), cove.Command{Argv: []string{"true"}})
		wants(t, cove.NotFound, err, "Start")
		_, err = c.Usage(t.Context())
		wants(t, cove.NotFound, err, "Usage")
	})
}

// neverReader blocks until the test is over.
type neverReader struct{ over <-chan struct{} }

func (r neverReader) Read([]byte) (int, error) {
	<-r.over
	return 0, errors.New("over")
}

func TestShutdown(t *testing.T) {
	everywhere(t, func(t *testing.T, c *guestAt) {
		if _, err := c.Start(t.Context(), sh("setsid sleep 1000 & sleep 1000")); err != nil {
			t.Fatal(err)
		}
		if err := c.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
}

func TestNothingIsLeft(t *testing.T) {
	needTerminal(t)
	for name, p := range places() {
		t.Run(name, func(t *testing.T) {
			_ = connect(t, p).Close() // what is made once and kept is made now
			runtime.GC()
			linuxtest.NoLeaks(t, "")
			ignore := goleak.IgnoreCurrent()
			t.Run("busy", func(t *testing.T) {
				c := connect(t, p)
				for range 20 {
					run(t, c, cove.Command{Argv: []string{"sh", "-c", "cat; sleep 1000 & exit 3"}, Stdin: strings.NewReader("x")})
				}
				r, _ := io.Pipe()
				if _, err := c.Start(t.Context(), cove.Command{Argv: []string{"cat"}, Stdin: r, Stdout: io.Discard}); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Start(t.Context(), cove.Command{Argv: []string{"cat"}, Stdin: strings.NewReader("x\n"), TTY: &cove.WindowSize{Cols: 80, Rows: 24}}); err != nil {
					t.Fatal(err)
				}
				a, err := c.Files().Archive(t.Context(), ".")
				if err != nil {
					t.Fatal(err)
				}
				if err := a.Close(); err != nil {
					t.Error(err)
				}
				for range c.Files().List(t.Context(), "/usr/bin", 1) {
					break
				}
				u, err := c.Usage(t.Context())
				if err != nil || u.PIDs < 20 {
					t.Errorf("%+v, %v", u, err)
				}
			})
			goleak.VerifyNone(t, ignore)
		})
	}
}

func TestExecutable(t *testing.T) {
	if path, err := guest.Executable(); err != nil || path == "" {
		t.Fatalf("%q, %v", path, err)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path, err := guest.Load(self)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
		if _, err := f.Write([]byte("x")); err == nil {
			t.Error("the agent's memory can be written to")
		}
		f.Close()
	}
	c := startExecutable(t, path)
	p, err := c.Start(t.Context(), sh("exit 4"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Wait(t.Context())
	if err != nil || r.ExitCode != 4 {
		t.Errorf("%+v, %v", r, err)
	}
	if d := cmp.Diff(cove.Exited, r.Outcome); d != "" {
		t.Error(d)
	}
}

func TestInstall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent-x")
	if guest.Whole(path, 5) {
		t.Error("what is not there is whole")
	}
	if err := guest.Install(path, []byte("image")); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "image" || !guest.Whole(path, 5) {
		t.Errorf("installed: %q, %v", text, err)
	}
	if guest.Whole(path, 6) {
		t.Error("half a file is whole")
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if guest.Whole(path, 5) {
		t.Error("a file that can be written to is as it was left")
	}
	if err := guest.Install(filepath.Join(t.TempDir(), "no", "agent"), nil); err == nil {
		t.Error("a directory that is not there was written to")
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.new")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestImage(t *testing.T) {
	if image, id, err := guest.Portable([]byte("lean"), "x", ""); err != nil || string(image) != "lean" || id != "x" {
		t.Errorf("the lean agent is %q, %q, %v", image, id, err)
	}
	path := leanAgent(t)
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if image, id, err := guest.Portable(nil, "", path); err != nil || !bytes.Equal(image, want) || len(id) != 16 {
		t.Errorf("a static executable is %d bytes, %q, %v", len(image), id, err)
	}
	_, _, err = guest.Portable(nil, "", "/bin/sh")
	wants(t, cove.Unavailable, err, "an executable with libraries")
	for _, none := range []string{"/etc/passwd", "/none"} {
		_, _, err = guest.Portable(nil, "", none)
		wants(t, cove.Internal, err, none)
	}
}
