package initproc_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux"
	"github.com/cove-sandbox/cove/internal/linux/initproc"
	"github.com/cove-sandbox/cove/internal/linux/landlock"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/mount"
	"github.com/cove-sandbox/cove/internal/linux/seccomp"
)

// refusal is a command that cannot be carried out.
type refusal struct {
	name   string
	change func(c *initproc.Command)
	before func() error // on the thread
	want   string
}

// closed is a number that no descriptor has.
const closed = 1 << 20

func refusals(null, dir int) []refusal {
	list := []refusal{
		{name: "directory", change: func(c *initproc.Command) { c.Dir = "/no/such" }, want: "enter /no/such: no such file or directory"},
		{name: "executable", change: func(c *initproc.Command) { c.Executable = dir }, want: "execute sh: permission denied"},
		{name: "no executable", change: func(c *initproc.Command) { c.Executable = closed }, want: "execute sh: bad file descriptor"},
		{name: "tasks", change: func(c *initproc.Command) { c.Tasks = []int{dir} }, want: "enter the control group: bad file descriptor"},
		{name: "group", change: func(c *initproc.Command) { c.Group = null }, want: "clone: bad file descriptor"},
		{name: "file", change: func(c *initproc.Command) { c.Files = []int{null, closed} }, want: "place a file: bad file descriptor"},
		{name: "file in its place", change: func(c *initproc.Command) { c.Files = manyFiles(null, closed) }, want: "keep a file: bad file descriptor"},
		{name: "proc directory", change: func(c *initproc.Command) { c.ProcDir = dir }, want: "deny the groups: no such file or directory"},
		{name: "user", change: func(c *initproc.Command) { c.Become, c.Outside = false, 77_777 }, want: "map the user: operation not permitted"},
		{name: "limit", change: func(c *initproc.Command) {
			c.Limits = []initproc.Limit{{Resource: unix.RLIMIT_NOFILE, Soft: 1 << 40, Hard: 1 << 40}}
		}, want: "limit resource 7: operation not permitted"},
		{name: "filter", change: func(c *initproc.Command) { c.Filter = []syscall.SockFilter{{}} }, want: "filter system calls: invalid argument"},
		{name: "no /proc to mount on", change: func(c *initproc.Command) { c.Proc = true }, before: bareRoot, want: "mount /proc: no such file or directory"},
	}
	if landlock.Probe() == nil {
		list = append(list, refusal{name: "ruleset", change: func(c *initproc.Command) { c.Ruleset = null }, want: "restrict by landlock: file descriptor in bad state"})
	}
	return list
}

// manyFiles are so many that the last is in its own place, and is not open.
func manyFiles(null, least int) []int {
	const last = 200
	files := make([]int, last+1)
	for i := range files {
		files[i] = null
	}
	files[last] = min(last, least)
	return files
}

// bareRoot makes a root with nothing but programs that of the calling thread.
func bareRoot() error {
	if err := (mount.Tmpfs{Size: 1 << 20, Files: 10, Mode: 0o755}).Mount("/mnt"); err != nil {
		return err
	}
	for _, dir := range []string{"/usr", "/bin", "/lib", "/lib64"} {
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		if err := errors.Join(os.Mkdir("/mnt"+dir, 0o755), mount.Bind(dir, "/mnt"+dir)); err != nil {
			return err
		}
	}
	return mount.Pivot("/mnt")
}

// startRefused tries all that cannot be, and says what came of it.
func startRefused(args []string) error {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	dir, err := unix.Open("/etc", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	sh, err := unix.Open("/bin/sh", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	found := map[string]string{}
	for _, r := range refusals(null, dir) {
		c, err := command(args[0], sh, "sh", "-c", "exec sleep 1000")
		if err != nil {
			return err
		}
		c.Files, c.Env = []int{null, null, null}, []string{"PATH=/usr/bin:/bin"}
		r.change(c)
		before := holdings()
		err = apart(func() error {
			if r.before != nil {
				if err := r.before(); err != nil {
					return fmt.Errorf("before: %w", err)
				}
			}
			_, err := initproc.Start(c)
			return err
		})
		found[r.name] = said(err)
		if e, ok := errors.AsType[*initproc.Error](err); !ok || !errors.Is(err, e.Errno) {
			found[r.name] += ", of another type"
		}
		if after := holdings(); after != before {
			found[r.name] += fmt.Sprintf(", and before: %s, after: %s", before, after)
		}
	}
	return print(found)
}

func TestRefused(t *testing.T) {
	linuxtest.Users(t, func(t *testing.T, user bool) {
		linuxtest.NoLeaks(t, "")
		want := map[string]string{}
		for _, r := range refusals(0, 0) {
			want[r.name] = r.want
		}
		got := read[map[string]string](t, play(t, "refused", user))
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("refused (-want +got):\n%s", d)
		}
	})
}

func TestMalformed(t *testing.T) {
	linuxtest.NoLeaks(t, "")
	for name, c := range map[string]initproc.Command{
		"NUL in an argument":    {Argv: []string{"a", "b\x00c"}},
		"NUL in the variables":  {Argv: []string{"a"}, Env: []string{"A=\x00"}},
		"NUL in the directory":  {Argv: []string{"a"}, Dir: "/\x00"},
		"nothing to be started": {},
	} {
		t.Run(name, func(t *testing.T) {
			c.Group, c.Ruleset = -1, -1
			if _, err := initproc.Start(&c); err == nil {
				t.Error("started")
			}
		})
	}
}

func TestBecomeNeedsRoot(t *testing.T) {
	if os.Getuid() == 0 {
		linuxtest.Again(t, "^TestBecomeNeedsRoot$")
		return
	}
	runtime.LockOSThread() // and never unlocked: it may have half changed
	_, err := initproc.Start(&initproc.Command{Argv: []string{"a"}, Become: true, Outside: outer, Group: -1, Ruleset: -1})
	if e, ok := errors.AsType[*initproc.Error](err); !ok || e.Step != "keep the privileges" || !errors.Is(err, unix.EPERM) {
		t.Errorf("an ordinary user becomes another: %v", err)
	}
}

// probeFiltered probes where clone3 is answered with an error.
func probeFiltered(args []string) error {
	answer := map[string]syscall.Errno{"missing": unix.ENOSYS, "forbidden": unix.EPERM}[args[1]]
	filter, err := seccomp.Policy{
		Rules:   []seccomp.Rule{{Calls: []string{"clone3"}, Else: seccomp.Fail(answer)}},
		Default: seccomp.Allow, Newer: seccomp.Allow,
	}.Compile()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := seccomp.Install(filter, false); err != nil {
		return err
	}
	err = initproc.Probe()
	if !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("probe: %w", err)
	}
	return print([]string{err.Error(), linux.RemedyOf(err)})
}

func TestProbe(t *testing.T) {
	linuxtest.Need(t, initproc.Probe())
	for name, want := range map[string][]string{"missing": {"has no clone3", "5.9"}, "forbidden": {"forbids clone3", "container"}} {
		t.Run(name, func(t *testing.T) {
			got := read[[]string](t, linuxtest.OK(t, linuxtest.Child{Name: "probe", Args: []string{"", name}}))
			for i := range want {
				if !strings.Contains(got[i], want[i]) {
					t.Errorf("%q does not say %q", got[i], want[i])
				}
			}
		})
	}
}
