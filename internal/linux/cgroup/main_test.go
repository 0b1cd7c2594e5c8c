package cgroup_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove/internal/linux"
	"github.com/cove-sandbox/cove/internal/linux/cgroup"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
)

func TestMain(m *testing.M) {
	linuxtest.Main(m, map[string]linuxtest.Func{"eat": eat, "open": openInside, "refused": refused})
}

// prefix starts the names of all managers in these tests.
const prefix = "covetest"

// manager opens a manager that the end of the test takes away.
func manager(t *testing.T, only int) *cgroup.Manager {
	t.Helper()
	linuxtest.NeedRoot(t)
	linuxtest.NoLeaks(t, prefix)
	m, err := cgroup.Open(cgroup.Config{Name: name(t), Only: only})
	linuxtest.Need(t, err)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func name(t *testing.T) string {
	return prefix + "-" + strings.Map(func(r rune) rune {
		if strings.ContainsRune("/.#", r) {
			return '_'
		}
		return r
	}, t.Name())
}

// group makes a group that the end of the test takes away.
func group(t *testing.T, m *cgroup.Manager, name string) *cgroup.Group {
	t.Helper()
	g, err := m.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(t, g) })
	return g
}

func end(t *testing.T, g *cgroup.Group) {
	t.Helper()
	ctx := context.Background()
	if err := errors.Join(g.Kill(ctx), g.Remove(ctx)); err != nil {
		t.Error(err)
	}
}

// member is a shell in a group that does nothing before it is let go.
type member struct {
	*exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	errors strings.Builder
}

// join starts a shell, adds it to a group and lets it run its script.
func join(t *testing.T, g *cgroup.Group, script string, args ...string) *member {
	t.Helper()
	m := &member{Cmd: exec.Command("sh", append([]string{"-c", "read -r line; " + script, "sh"}, args...)...)}
	var err error
	if m.stdin, err = m.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if m.stdout, err = m.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	m.Stderr = &m.errors
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = g.Kill(context.Background())
		_ = m.Process.Kill()
		_ = m.Wait()
	})
	if err := g.Add(m.Process.Pid); err != nil {
		t.Fatal(err)
	}
	m.say(t, "go")
	return m
}

func (m *member) say(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(m.stdin, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// hear waits for some bytes.
func (m *member) hear(t *testing.T, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(m.stdout, got); err != nil || string(got) != want {
		t.Fatalf("heard %q %v, want %q; %s", got, err, want, &m.errors)
	}
}

// signal is what ended the member.
func (m *member) signal(t *testing.T) syscall.Signal {
	t.Helper()
	_ = m.Wait()
	status, ok := m.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		t.Fatalf("the member ended with %s: %s", m.ProcessState, &m.errors)
	}
	return status.Signal()
}

// eat touches more memory than it should get.
func eat([]string) error {
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return err
	}
	var kept [][]byte
	for range 512 {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		kept = append(kept, b)
	}
	return fmt.Errorf("ate %d MiB and lives", len(kept))
}

// openInside opens a manager from within the group that this process is in, and
// reports where it went.
func openInside(args []string) error {
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return err
	}
	var cfg cgroup.Config
	if err := json.Unmarshal([]byte(args[0]), &cfg); err != nil {
		return err
	}
	m, err := cgroup.OpenWanting(cfg, args[1:])
	if err != nil {
		return err
	}
	g, err := m.Create("inner")
	if err != nil {
		return err
	}
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := errors.Join(g.Kill(ctx), g.Remove(ctx), m.Close()); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(found{m.Dirs(), string(self)})
}

// found is the report of openInside.
type found struct {
	Dirs map[string]string
	Self string
}

func refused([]string) error {
	_, err := cgroup.Open(cgroup.Config{Name: prefix})
	if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(linux.RemedyOf(err), "Delegate=yes") {
		return fmt.Errorf("an ordinary user: %w", err)
	}
	return nil
}

// kinds are the versions that tests run with; 0 is both together, as far as
// they are there.
var kinds = []struct {
	name string
	only int
}{{"auto", 0}, {"v1", 1}, {"v2", 2}}

// needLimit skips a test whose limit this host cannot enforce with this kind of
// groups. Auto must be able to.
func needLimit(t *testing.T, only int, err error) {
	t.Helper()
	if err != nil && only != 0 {
		t.Skip(err)
	}
	linuxtest.Need(t, err)
}

func contains(all []string, s string) bool { return slices.Contains(all, s) }
