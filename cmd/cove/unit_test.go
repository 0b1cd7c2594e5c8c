package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
)

// unit is a place like the one that deploy/cove.service makes, as far as that
// can be had without systemd: its capabilities, no new privileges, and a system
// that is read-only but for one directory and /run/cove.
type unit struct {
	t    *testing.T
	dir  string // can be written to
	caps string // for setpriv
}

func newUnit(t *testing.T) *unit {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("the unit is for root")
	}
	needLocal(t)
	text, err := os.ReadFile("../../deploy/cove.service")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^CapabilityBoundingSet=(.*)$`).FindSubmatch(text)
	if line == nil {
		t.Fatal("the unit has no CapabilityBoundingSet")
	}
	u := &unit{t: t, dir: t.TempDir(), caps: "-all"}
	for name := range strings.FieldsSeq(string(line[1])) {
		u.caps += ",+" + strings.ToLower(strings.TrimPrefix(name, "CAP_"))
	}
	return u
}

// command is a cove in that place. Each is in a mount namespace of its own, as
// each start of a service is.
func (u *unit) command(args ...string) *exec.Cmd {
	const place = `set -e
mkdir -p /run/cove
mount --bind /run/cove /run/cove
mount --bind "$0" "$0"
mount -o remount,bind,ro /
caps=$1; shift
exec setpriv --no-new-privs --bounding-set "$caps" cove "$@"`
	cmd := exec.CommandContext(u.t.Context(), "unshare", append([]string{"--mount", "--propagation", "slave", "sh", "-c", place, u.dir, u.caps}, args...)...)
	cmd.Env = u.env()
	return cmd
}

func (u *unit) env() []string {
	return append(os.Environ(), "COVE_HOME="+u.home(), "TMPDIR="+u.dir, "SANDBOX_PROVIDER=local", "POOL_SIZE=0", "COVE_LOG_LEVEL=error", "COVE_VOLUMES="+u.volume()+":rw")
}

func (u *unit) home() string   { return filepath.Join(u.dir, "home") }
func (u *unit) volume() string { return filepath.Join(u.dir, "volume") }

// serve starts a server there, as systemctl start does. end is systemctl stop
// with KillMode=process.
func (u *unit) serve() (end func()) {
	u.t.Helper()
	cmd := u.command("serve", "--addr", "127.0.0.1:0")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait()
	}()
	end = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		<-done
	}
	u.t.Cleanup(end)
	if !eventually(30*time.Second, func() bool { _, ok := serving(u.home()); return ok }) {
		end()
		u.t.Fatalf("no server: %s", log.String())
	}
	return end
}

// TestTheUnitIsEnough makes every kind of sandbox where the unit's rights are
// all there are, and restarts the server under them.
func TestTheUnitIsEnough(t *testing.T) {
	u := newUnit(t)
	if err := os.Mkdir(u.volume(), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(u.volume(), 0o777); err != nil {
		t.Fatal(err)
	}
	free := exec.CommandContext(t.Context(), "cove", "doctor", "--json")
	free.Env = u.env()
	want, err := free.Output()
	if err != nil {
		t.Fatalf("cove doctor: %v", err)
	}
	got, err := u.command("doctor", "--json").Output()
	if diff := cmp.Diff(string(want), string(got)); err != nil || diff != "" {
		t.Errorf("cove doctor has less under the unit (%v, -without +under):\n%s", err, diff)
	}

	end := u.serve()
	c := connect(t, u.home())
	open := map[string]*cove.Session{}
	for name, spec := range map[string]cove.Spec{
		"memory":  {},
		"disk":    {Workspace: cove.Workspace{Kind: cove.WorkspaceDisk, Size: 64 * cove.MiB}},
		"network": {Network: cove.Network{Mode: cove.NetworkAllow, Allow: []string{"example.com"}}},
		"volume":  {Volumes: []cove.Volume{{Source: u.volume(), Target: "/mnt/v", Write: true}}},
	} {
		s, err := c.Sessions().Open(t.Context(), cove.OpenRequest{Spec: spec})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		open[name] = s
		run(t, c, s, "echo "+name+" >kept")
	}
	run(t, c, open["volume"], "echo seen >/mnt/v/file")
	end()

	end = u.serve()
	c = connect(t, u.home())
	for name, s := range open {
		if got := run(t, c, s, "cat kept"); got != name+"\n" {
			t.Errorf("after a restart of the service the session %q has %q", name, got)
		}
		if _, err := c.Sessions().Close(t.Context(), s.ID, false); err != nil {
			t.Error(err)
		}
	}
	end()
}

// run runs a line that must succeed, and returns what it wrote.
func run(t *testing.T, p cove.Platform, s *cove.Session, line string) string {
	t.Helper()
	x, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: line})
	if err != nil || x.ExitCode != 0 {
		t.Fatalf("%s: %+v, %v", line, x, err)
	}
	return string(x.Stdout.Data)
}
