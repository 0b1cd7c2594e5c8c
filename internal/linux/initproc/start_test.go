package initproc_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/cgroup"
	"github.com/cove-sandbox/cove/internal/linux/initproc"
	"github.com/cove-sandbox/cove/internal/linux/landlock"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/seccomp"
)

// groupName is that of the control groups of these tests.
const groupName = "covetest-initproc"

// seen is what both sides say of a program.
type seen struct {
	Inside  state
	Outside struct {
		User   string // of the process, to the starter
		Groups string // the control groups it is in
		Code   int
	}
}

// startWhole starts a program with everything there is.
func startWhole(args []string) (err error) {
	program, env, err := self("one", "two")
	if err != nil {
		return err
	}
	c, err := command(args[0], program, "first", "second")
	if err != nil {
		return err
	}
	c.Env, c.Dir, c.Proc, c.OwnGroups = env, "/usr", true, true
	c.Limits = []initproc.Limit{{Resource: unix.RLIMIT_NOFILE, Soft: 99, Hard: 100}}
	filter, err := seccomp.Sandbox().Compile()
	if err != nil {
		return err
	}
	c.Filter = filter
	if args[0] == "root" {
		end, err := enterGroup(c, args[1])
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, end()) }()
	}
	if landlock.Probe() == nil {
		if c.Ruleset, _, err = landlock.Open(landlock.Ruleset{Rules: []landlock.Rule{
			{File: program, Allow: landlock.Execute | landlock.ReadFile}, {Path: "/", Allow: landlock.ReadOnly},
		}}); err != nil {
			return err
		}
	}
	return converse(c)
}

// enterGroup makes a control group for a program.
func enterGroup(c *initproc.Command, name string) (end func() error, err error) {
	m, err := cgroup.Open(cgroup.Config{Name: name})
	if err != nil {
		return nil, err
	}
	g, err := m.Create("one")
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	tasks, err := g.Tasks()
	for _, f := range tasks {
		c.Tasks = append(c.Tasks, int(f.Fd()))
	}
	if fd, ok := g.FD(); ok {
		c.Group = fd
	}
	return func() error {
		for _, f := range tasks {
			_ = f.Close()
		}
		return errors.Join(g.Remove(context.Background()), m.Close())
	}, err
}

// converse starts a program, lets it report, looks at it and ends it.
func converse(c *initproc.Command) error {
	in, hold, err := os.Pipe()
	if err != nil {
		return err
	}
	out, say, err := os.Pipe()
	if err != nil {
		return err
	}
	c.Files = append([]int{int(in.Fd()), int(say.Fd()), 2}, c.Files...)
	p, err := start(c)
	if err != nil {
		return err
	}
	_, _ = in.Close(), say.Close()
	var s seen
	if s.Inside, err = hear(hold, out); err != nil {
		p.End()
		return err
	}
	dir := "/proc/" + strconv.Itoa(p.PID)
	text, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	if err != nil {
		return err
	}
	s.Outside.Groups = string(text)
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return err
	}
	s.Outside.User = fmt.Sprint(st.Uid, ":", st.Gid)
	_ = hold.Close()
	if s.Outside.Code, err = reap(p); err != nil {
		return err
	}
	return print(s)
}

// startOld is startWhole as on a kernel that has less.
func startOld(args []string) error {
	initproc.Old()
	return startWhole(args)
}

func TestProgram(t *testing.T) { testProgram(t, "whole") }

func TestProgramOfOldKernels(t *testing.T) { testProgram(t, "old") }

func testProgram(t *testing.T, how string) {
	linuxtest.Users(t, func(t *testing.T, user bool) {
		linuxtest.Need(t, initproc.Probe())
		name := groupName + strconv.Itoa(os.Getpid())
		if !user {
			m, err := cgroup.Open(cgroup.Config{Name: name})
			linuxtest.Need(t, err)
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		}
		linuxtest.NoLeaks(t, name)
		s := read[seen](t, play(t, how, user, name))
		checkInside(t, s.Inside)
		if user && s.Outside.User != "0:0" || !user && s.Outside.User != fmt.Sprint(outer, ":", outer) {
			t.Errorf("outside it is %s", s.Outside.User)
		}
		if s.Outside.Code != 0 {
			t.Errorf("exit code %d", s.Outside.Code)
		}
		if user {
			return
		}
		for line := range strings.Lines(s.Outside.Groups) {
			if strings.Contains(line, ":memory:") && !strings.HasSuffix(line, name+"/one\n") {
				t.Errorf("the control group is %s", line)
			}
		}
		if !strings.Contains(s.Outside.Groups, name+"/one\n") {
			t.Errorf("it is in no group: %s", s.Outside.Groups)
		}
		if strings.Contains(s.Inside.ControlGroups, name) {
			t.Errorf("it sees its group: %s", s.Inside.ControlGroups)
		}
	})
}

func checkInside(t *testing.T, got state) {
	t.Helper()
	want := state{
		PID: 1, Parent: 0, User: inner, Group: inner,
		Status:  map[string]string{"NoNewPrivs": "1", "Seccomp": "2", "SigBlk": "0000000000000000", "CapBnd": "0000000000000000"},
		Unshare: unix.EPERM.Error(), WriteNull: unix.EACCES.Error(),
		Limit: unix.Rlimit{Cur: 99, Max: 100},
		Dir:   "/usr", Args: []string{"one", "two"}, Processes: []string{"/proc/1"},
	}
	if landlock.Probe() != nil {
		want.WriteNull = "done"
	}
	for line := range strings.Lines(got.ControlGroups) {
		if !strings.HasSuffix(line, ":/\n") {
			t.Errorf("control group %s", line)
		}
	}
	if open := slices.Sorted(maps.Keys(got.Open)); !cmp.Equal(open, []string{"0", "1", "2", "3"}) && !cmp.Equal(open, []string{"0", "1", "2"}) {
		t.Errorf("open are %v", open) // reading the list is one more
	}
	if !slices.Contains(got.Env, "MARK=yes") || len(got.Env) != 2 { // and PATH
		t.Errorf("the environment is %q", got.Env)
	}
	for _, g := range got.Groups { // those of an ordinary user are nobody's inside
		if g != 65534 && g != inner {
			t.Errorf("in group %d", g)
		}
	}
	got.ControlGroups, got.Open, got.Env, got.Groups = "", nil, nil, nil
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("inside (-want +got):\n%s", d)
	}
}

// placed is what startFiles says: which files the program should have at which
// descriptor, and has.
type placed struct{ Want, Got map[string]string }

// startFiles gives a program files whose numbers here are places there.
func startFiles(args []string) error {
	in, hold, err := os.Pipe()
	if err != nil {
		return err
	}
	out, say, err := os.Pipe()
	if err != nil {
		return err
	}
	var others []int
	for range 6 {
		fd, err := unix.MemfdCreate("other", unix.MFD_CLOEXEC)
		if err != nil {
			return err
		}
		others = append(others, fd)
	}
	program, env, err := self()
	if err != nil {
		return err
	}
	c, err := command(args[0], program, "inside")
	if err != nil {
		return err
	}
	if landlock.Probe() == nil {
		if c.Ruleset, _, err = landlock.Open(landlock.Ruleset{Rules: []landlock.Rule{{Path: "/", Allow: landlock.ReadOnly}, {File: program, Allow: landlock.ReadOnly}}}); err != nil {
			return err
		}
	}
	c.Env = env
	c.Files = []int{int(in.Fd()), int(say.Fd()), 2}
	// Backwards, then as they are, then one thing again and again.
	for i := range program + 12 {
		c.Files = append(c.Files, others[len(others)-1-i%len(others)])
	}
	for _, fd := range others[1:4] {
		c.Files[fd] = fd
	}
	var got placed
	got.Want = map[string]string{}
	for i, fd := range c.Files {
		got.Want[strconv.Itoa(i)] = identity(fd)
	}
	p, err := start(c)
	if err != nil {
		return err
	}
	_, _ = in.Close(), say.Close()
	s, err := hear(hold, out)
	if err != nil {
		return err
	}
	_ = hold.Close()
	if _, err := reap(p); err != nil {
		return err
	}
	got.Got = s.Open
	delete(got.Got, strconv.Itoa(len(c.Files))) // by which it read the list
	return print(got)
}

func TestFilesOverlap(t *testing.T) {
	linuxtest.Users(t, func(t *testing.T, user bool) {
		linuxtest.NoLeaks(t, "")
		got := read[placed](t, play(t, "files", user))
		if d := cmp.Diff(got.Want, got.Got); d != "" {
			t.Errorf("files (-want +got):\n%s", d)
		}
	})
}

// startMany starts programs from many threads at once.
func startMany(args []string) error {
	const threads, rounds = 12, 10
	sh, err := unix.Open("/bin/sh", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	// It must be there when its /proc is mounted.
	c, err := command(args[0], sh, "sh", "-c", "read -r line; exit $0")
	if err != nil {
		return err
	}
	before := holdings()
	failed := make(chan error, threads)
	for i := range threads {
		go func() {
			mine := *c
			mine.Proc = i%2 == 0
			mine.Argv = append(slices.Clone(c.Argv), strconv.Itoa(i))
			if mine.Become {
				mine.Outside += uint32(i)
			}
			var errs []error
			for range rounds {
				code, err := startHeld(&mine, null)
				if err != nil || code != i {
					errs = append(errs, fmt.Errorf("program %d ended with %d: %w", i, code, err))
				}
			}
			failed <- errors.Join(errs...)
		}()
	}
	for range threads {
		err = errors.Join(err, <-failed)
	}
	if after := holdings(); after != before {
		err = errors.Join(err, fmt.Errorf("before: %s, after: %s", before, after))
	}
	return err
}

// startHeld starts a program that waits for the end of its input, and ends it.
func startHeld(c *initproc.Command, null int) (code int, err error) {
	in, hold, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	c.Files = []int{int(in.Fd()), null, null}
	p, err := start(c)
	_, _ = in.Close(), hold.Close()
	if err != nil {
		return 0, err
	}
	return reap(p)
}

func TestManyAtOnce(t *testing.T) {
	linuxtest.Users(t, func(t *testing.T, user bool) {
		linuxtest.NoLeaks(t, "")
		play(t, "many", user)
	})
}

// startAndEnd ends a program that would not, and what it started.
func startAndEnd(args []string) error {
	sh, err := unix.Open("/bin/sh", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	out, say, err := os.Pipe()
	if err != nil {
		return err
	}
	c, err := command(args[0], sh, "sh", "-c", "trap '' TERM; sleep 1000 & echo; wait")
	if err != nil {
		return err
	}
	before := holdings()
	c.Env = []string{"PATH=" + os.Getenv("PATH")}
	c.Files = []int{int(say.Fd()), int(say.Fd()), int(say.Fd())}
	p, err := start(c)
	if err != nil {
		return err
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		return err
	}
	p.End()
	if after := holdings(); after != before {
		return fmt.Errorf("before: %s, after: %s", before, after)
	}
	// Nobody is left who could write.
	_ = say.Close()
	if n, err := out.Read(make([]byte, 1)); n != 0 {
		return fmt.Errorf("%d bytes: %w", n, err)
	}
	return nil
}

func TestEnd(t *testing.T) {
	linuxtest.Users(t, func(t *testing.T, user bool) {
		linuxtest.NoLeaks(t, "")
		play(t, "end", user)
	})
}
