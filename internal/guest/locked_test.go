//go:build linux

package guest_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/capability"
	"github.com/cove-sandbox/cove/internal/linux/landlock"
	"github.com/cove-sandbox/cove/internal/linux/seccomp"
)

// lockUp does to this thread what a provider does before an agent runs.
func lockUp() error {
	files := unix.Rlimit{Cur: 1024, Max: 4096}
	if err := errors.Join(unix.Setrlimit(unix.RLIMIT_NOFILE, &files), unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})); err != nil {
		return err
	}
	prog, err := seccomp.Sandbox().Compile()
	if err != nil {
		return err
	}
	if err := capability.Drop(); err != nil {
		return err
	}
	if landlock.Probe() == nil {
		rules := []landlock.Rule{{Path: "/", Allow: landlock.ReadOnly}}
		for _, dir := range []string{"/workspace", "/tmp", "/home", "/dev/shm", "/dev/pts"} {
			rules = append(rules, landlock.Rule{Path: dir, Allow: landlock.ReadWrite | landlock.DeviceIoctl})
		}
		for _, dev := range []string{"null", "zero", "full", "random", "urandom", "tty", "ptmx"} {
			rules = append(rules, landlock.Rule{Path: "/dev/" + dev, Allow: landlock.Device})
		}
		if _, err := landlock.Restrict(landlock.Ruleset{Apart: true, Rules: rules}); err != nil {
			return err
		}
	}
	return seccomp.Install(prog, false)
}

// lockedPlaces are the ways to be born behind all walls.
func lockedPlaces(t *testing.T, test func(t *testing.T, c *guestAt)) {
	for name, p := range map[string]place{"descriptors": {locked: true}, "framed": {locked: true, framed: true}} {
		t.Run(name, func(t *testing.T) { test(t, connect(t, p)) })
	}
}

// TestLockedUp shows that an agent that was born behind all of a sandbox's walls
// does everything, and that programs are behind them, too.
func TestLockedUp(t *testing.T) {
	lockedPlaces(t, func(t *testing.T, c *guestAt) {
		if c.PID() != 1 {
			t.Fatalf("the agent has pid %d", c.PID())
		}
		for name, tc := range map[string]struct {
			script string
			want   string
		}{
			"limits":        {"ulimit -Sn; ulimit -Hn; ulimit -c", "1024\n2048\n0\n"},
			"privileges":    {"grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t'", "CapEff:0000000000000000\nCapBnd:0000000000000000\nNoNewPrivs:1\nSeccomp:2\n"},
			"descriptors":   {"ls /proc/self/fd", "0\n1\n2\n3\n"},
			"read-only":     {"echo x 2>&- >/etc/x || echo refused", "refused\n"},
			"no terminal":   {"(: </dev/tty) 2>/dev/null || echo none", "none\n"},
			"shared memory": {"echo shared >/dev/shm/$$; cat /dev/shm/$$; rm /dev/shm/$$", "shared\n"},
			"agent":         {"cat /proc/1/mem /proc/1/fd/0 2>/dev/null; readlink /proc/1/exe || echo closed", "closed\n"},
		} {
			r, out, errs := run(t, c, sh(tc.script))
			if out != tc.want {
				t.Errorf("%s: %+v, %q, %q", name, r, out, errs)
			}
		}
		var screen bytes.Buffer
		p, err := c.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", "stty size </dev/tty; test -t 0 && echo yes"}, Stdout: &screen, TTY: &cove.WindowSize{Cols: 80, Rows: 24}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Wait(t.Context()); err != nil || screen.String() != "24 80\r\nyes\r\n" {
			t.Errorf("%v, the terminal showed %q", err, screen.String())
		}
		wants(t, cove.Unavailable, c.dialNobody(t), "dialing nobody")
	})
}

func (c *guestAt) dialNobody(t *testing.T) error {
	t.Helper()
	conn, err := c.Dial(t.Context(), 1)
	if err == nil {
		conn.Close()
	}
	return err
}

func TestFilesLockedUp(t *testing.T) {
	lockedPlaces(t, func(t *testing.T, c *guestAt) {
		f := c.Files()
		if err := f.Write(t.Context(), "dir/file", strings.NewReader("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		wants(t, cove.Denied, f.Write(t.Context(), "/etc/x", strings.NewReader("x"), 0o600), "a write to /etc")
		if err := f.Move(t.Context(), "dir/file", "moved"); err != nil {
			t.Error(err)
		}
		var names strings.Builder
		for i, err := range f.List(t.Context(), ".", 2) {
			if err != nil {
				t.Fatal(err)
			}
			names.WriteString(i.Path + " ")
		}
		if names.String() != "/workspace/dir /workspace/moved " {
			t.Errorf("the files are %s", names.String())
		}
		a, err := f.Archive(t.Context(), ".")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, a); err != nil || n == 0 {
			t.Errorf("an archive of %d bytes, %v", n, err)
		}
		a.Close()
		for change, err := range f.Watch(t.Context(), ".") {
			if err != nil {
				t.Fatal(err)
			}
			if change.Kind == cove.Watching {
				run(t, c, sh("echo x >new"))
				continue
			}
			if change.Path != "/workspace/new" {
				t.Errorf("%+v", change)
			}
			break
		}
		if u, err := c.Usage(t.Context()); err != nil || u.PIDs != 0 {
			t.Errorf("%+v, %v", u, err)
		}
	})
}

// TestSignalsToTheAgent shows that no program can disturb its agent.
func TestSignalsToTheAgent(t *testing.T) {
	lockedPlaces(t, func(t *testing.T, c *guestAt) {
		var script strings.Builder
		for sig := 1; sig <= 64; sig++ {
			fmt.Fprintf(&script, "kill -%d 1 || echo %d\n", sig, sig)
		}
		r, out, errs := run(t, c, sh(script.String()))
		if r.ExitCode != 0 || out != "" || errs != "" {
			t.Fatalf("%+v, stdout %q, stderr %q", r, out, errs)
		}
		flood, err := c.Start(t.Context(), sh("while :; do kill -URG 1; kill -PROF 1; kill -SEGV 1; kill -CHLD 1; kill -STOP 1; kill -40 1; done"))
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			if r, out, _ := run(t, c, sh("echo fine")); r.ExitCode != 0 || out != "fine\n" {
				t.Fatalf("%+v, %q", r, out)
			}
		}
		if err := flood.Kill(t.Context()); err != nil {
			t.Error(err)
		}
		if r, err := flood.Wait(t.Context()); err != nil || r.Outcome != cove.Killed {
			t.Errorf("%+v, %v", r, err)
		}
	})
}
