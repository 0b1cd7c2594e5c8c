package forkexec_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/forkexec"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
)

func pointer(p *int32) uintptr { return uintptr(unsafe.Pointer(p)) }

// reap waits for a program and returns its status.
func reap(t testing.TB, pid int) syscall.WaitStatus {
	t.Helper()
	var status syscall.WaitStatus
	for {
		got, err := syscall.Wait4(pid, &status, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || got != pid {
			t.Fatalf("wait4(%d): %d %v", pid, got, err)
		}
		return status
	}
}

// run starts a command with its output in a pipe, which is also what its other
// descriptors are.
func run(t *testing.T, c forkexec.Command) (string, syscall.WaitStatus) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if c.Files == nil {
		c.Files = []int{int(w.Fd()), int(w.Fd()), int(w.Fd())}
	} else {
		c.Files[1] = int(w.Fd())
	}
	pid, err := forkexec.Start(&c)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(out), reap(t, pid)
}

// self is this test binary as a program that reports what it finds.
func self(args ...string) forkexec.Command {
	child := linuxtest.Child{Name: "report", Args: args, Env: []string{"GOCOVERDIR=/nowhere"}}
	return forkexec.Command{Path: "/proc/self/exe", Argv: []string{"self"}, Env: linuxtest.Env(child)}
}

func ask(t *testing.T, c forkexec.Command) state {
	t.Helper()
	out, status := run(t, c)
	var s state
	if err := json.Unmarshal([]byte(out), &s); err != nil || status != 0 {
		t.Fatalf("status %#x, %v: %s", status, err, out)
	}
	return s
}

func TestStartGivesWhatItWasGiven(t *testing.T) {
	linuxtest.NoLeaks(t, "")
	leaky, err := unix.Open("/dev/null", unix.O_RDONLY, 0) // not close-on-exec
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leaky)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := self("a b", "", "ü\xff")
	c.Dir, c.Session, c.Reaper = dir, true, true
	c.Limits = []forkexec.Limit{{Resource: unix.RLIMIT_NOFILE, Soft: 40, Hard: 50}}
	s := ask(t, c)
	if len(s.Files) != 3 || s.Files["0"] != s.Files["1"] || s.Files["1"] != s.Files["2"] || !strings.HasPrefix(s.Files["1"], "pipe:") {
		t.Errorf("descriptors: %v", s.Files)
	}
	if d := cmp.Diff([]string{"a b", "", "ü\ufffd"}, s.Args); d != "" {
		t.Error(d)
	}
	if s.Dir != dir || !s.Leader || !s.Reaper || s.HasTerminal {
		t.Errorf("found %+v", s)
	}
	// Go raises the soft limit of its own programs.
	if s.NoFile.Max != 50 {
		t.Errorf("limit %+v", s.NoFile)
	}
	if strings.Trim(s.Blocked, "0") != "" {
		t.Errorf("blocked signals: %s", s.Blocked)
	}
	if slices.ContainsFunc(s.Env, func(e string) bool { return strings.HasPrefix(e, "HOME=") }) {
		t.Errorf("the environment leaked: %v", s.Env)
	}
}

func TestStartPlain(t *testing.T) {
	s := ask(t, self())
	if s.Leader || s.GroupLeader || s.Reaper {
		t.Errorf("nobody asked for %+v", s)
	}
	c := self()
	c.Group = true
	if s := ask(t, c); s.Leader || !s.GroupLeader {
		t.Errorf("found %+v", s)
	}
	here, _ := os.Getwd()
	if s.Dir != here {
		t.Errorf("directory %s, want %s", s.Dir, here)
	}
}

// TestStartMovesDescriptors wants descriptors in places that others have.
func TestStartMovesDescriptors(t *testing.T) {
	linuxtest.NoLeaks(t, "")
	dir := t.TempDir()
	var files []*os.File
	for _, name := range []string{"a", "b", "c", "d"} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	fd := func(i int) int { return int(files[i].Fd()) }
	c := self()
	// Place 1 is the pipe; 2 and 3 come from 0 and 2, which are taken before.
	c.Files = []int{fd(0), -1, 0, 2, fd(3), fd(3)}
	s := ask(t, c)
	stdin, _ := os.Readlink("/proc/self/fd/0")
	stderr, _ := os.Readlink("/proc/self/fd/2")
	want := map[string]string{"0": dir + "/a", "1": s.Files["1"], "2": stdin, "3": stderr, "4": dir + "/d", "5": dir + "/d"}
	if d := cmp.Diff(want, s.Files); d != "" {
		t.Error(d)
	}
}

func TestStartOnTerminal(t *testing.T) {
	linuxtest.NoLeaks(t, "")
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	defer unix.Close(master)
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	slave, err := unix.IoctlRetInt(master, unix.TIOCGPTPEER) // opened with no flags: as a terminal for reading
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	defer unix.Close(slave)
	c := self()
	c.Terminal = true
	c.Files = []int{slave, -1, slave}
	if s := ask(t, c); !s.HasTerminal || !s.Leader {
		t.Errorf("found %+v", s)
	}
}

func TestStartErrors(t *testing.T) {
	linuxtest.NoLeaks(t, "")
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("no program"), 0o644); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	fd := int(null.Fd())
	argv := []string{"x"}
	for name, c := range map[string]struct {
		command forkexec.Command
		stage   forkexec.Stage
		errno   syscall.Errno
	}{
		"missing":        {forkexec.Command{Path: "/nonexistent", Argv: argv}, forkexec.StageExec, unix.ENOENT},
		"not executable": {forkexec.Command{Path: plain, Argv: argv}, forkexec.StageExec, unix.EACCES},
		"no format":      {forkexec.Command{Path: text, Argv: argv}, forkexec.StageExec, unix.ENOEXEC},
		"directory":      {forkexec.Command{Path: "/", Argv: argv}, forkexec.StageExec, unix.EACCES},
		"too long":       {forkexec.Command{Path: "/bin/sh", Argv: []string{"x", strings.Repeat("x", 2<<20)}}, forkexec.StageExec, unix.E2BIG},
		"no directory":   {forkexec.Command{Path: "/bin/sh", Argv: argv, Dir: "/nonexistent"}, forkexec.StageDirectory, unix.ENOENT},
		"NUL in path":    {forkexec.Command{Path: "/bin\x00/sh", Argv: argv}, forkexec.StageArguments, unix.EINVAL},
		"NUL in argv":    {forkexec.Command{Path: "/bin/sh", Argv: []string{"a\x00"}}, forkexec.StageArguments, unix.EINVAL},
		"NUL in env":     {forkexec.Command{Path: "/bin/sh", Argv: argv, Env: []string{"a\x00"}}, forkexec.StageArguments, unix.EINVAL},
		"NUL in dir":     {forkexec.Command{Path: "/bin/sh", Argv: argv, Dir: "\x00"}, forkexec.StageArguments, unix.EINVAL},
		"no argv":        {forkexec.Command{Path: "/bin/sh"}, forkexec.StageArguments, unix.EINVAL},
		"closed file":    {forkexec.Command{Path: "/bin/sh", Argv: argv, Files: []int{fd, 9999}}, forkexec.StageDescriptors, unix.EBADF},
		"closed low":     {forkexec.Command{Path: "/bin/sh", Argv: argv, Files: []int{fd, fd, fd, fd, 9999, -1}}, forkexec.StageDescriptors, unix.EBADF},
		"no terminal":    {forkexec.Command{Path: "/bin/sh", Argv: argv, Files: []int{fd}, Terminal: true}, forkexec.StageTerminal, unix.ENOTTY},
		"no file at all": {forkexec.Command{Path: "/bin/sh", Argv: argv, Terminal: true}, forkexec.StageArguments, unix.EINVAL},
		"bad limit":      {forkexec.Command{Path: "/bin/sh", Argv: argv, Limits: []forkexec.Limit{{Resource: 99}}}, forkexec.StageLimits, unix.EINVAL},
	} {
		pid, err := forkexec.Start(&c.command)
		e, ok := errors.AsType[*forkexec.Error](err)
		if !ok || e.Stage != c.stage || !errors.Is(err, c.errno) || pid != 0 {
			t.Errorf("%s: %d %v, want %s: %s", name, pid, err, c.stage, c.errno)
		}
		if want := "start: " + c.stage.String() + ": " + c.errno.Error(); ok && err.Error() != want {
			t.Errorf("%s: %q, want %q", name, err, want)
		}
	}
	if got := forkexec.Stage(99).String(); got != "unknown" {
		t.Errorf("stage 99 is %q", got)
	}
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, unix.ECHILD) {
		t.Errorf("a child is left: %v", err)
	}
}

func TestStartManyArguments(t *testing.T) {
	argv := append([]string{"sh", "-c", `echo "$# $0 ${10000}"`, "name"}, slices.Repeat([]string{"x"}, 9999)...)
	out, status := run(t, forkexec.Command{Path: "/bin/sh", Argv: append(argv, "last")})
	if out != "10000 name last\n" || status != 0 {
		t.Errorf("%q, status %#x", out, status)
	}
}

func TestStartConcurrently(t *testing.T) {
	linuxtest.NoLeaks(t, "")
	path, err := exec.LookPath("true")
	if err != nil {
		t.Skip(err)
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 10 {
				pid, err := forkexec.Start(&forkexec.Command{Path: path, Argv: []string{"true"}, Group: true, Reaper: true})
				if err != nil {
					t.Error(err)
					return
				}
				if status := reap(t, pid); status != 0 {
					t.Errorf("status %#x", status)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkStart(b *testing.B) {
	path, err := exec.LookPath("true")
	if err != nil {
		b.Skip(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	fd := int(null.Fd())
	b.Run("forkexec", func(b *testing.B) {
		for b.Loop() {
			pid, err := forkexec.Start(&forkexec.Command{Path: path, Argv: []string{"true"}, Files: []int{fd, fd, fd}, Group: true, Reaper: true})
			if err != nil {
				b.Fatal(err)
			}
			reap(b, pid)
		}
	})
	b.Run("syscall", func(b *testing.B) {
		for b.Loop() {
			pid, err := syscall.ForkExec(path, []string{"true"}, &syscall.ProcAttr{Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}, Sys: &syscall.SysProcAttr{Setpgid: true}})
			if err != nil {
				b.Fatal(err)
			}
			reap(b, pid)
		}
	})
	b.Run("os", func(b *testing.B) {
		for b.Loop() {
			if err := exec.CommandContext(b.Context(), path).Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
