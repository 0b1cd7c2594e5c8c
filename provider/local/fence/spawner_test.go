//go:build linux

package fence_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

func TestKilled(t *testing.T) {
	need(t)
	linuxtest.NoLeaks(t, "")
	b, err := open(t, "spawner", newPlan(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	spawner, ok := b.(*fence.Spawner)
	if !ok {
		t.Fatalf("%T", b)
	}
	o := anyOrder
	o.Handles = true
	s := build(t, b, o)
	select {
	case <-spawner.Done():
		t.Fatal("it is done")
	default:
	}
	if err := unix.Kill(spawnerPID(t), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-spawner.Done()
	ours, theirs := link(t)
	defer func() { _, _ = unix.Close(ours), unix.Close(theirs) }()
	if _, err := b.Build(t.Context(), anyOrder, fence.Handles{Link: theirs, Group: -1}); !errors.Is(err, fence.ErrEnded) {
		t.Errorf("build: %v", err)
	}
	if err := b.Resize(t.Context(), s.Handles, room(2<<20)); !errors.Is(err, fence.ErrEnded) {
		t.Errorf("resize: %v", err)
	}
	if got, code := s.run(t, "echo still here; id -u"); got != "still here\n1000\n" || code != 0 {
		t.Errorf("the sandbox says %q", got)
	}
}

// TestKilledWhileBuilding: every call ends, with what it made or with an error.
func TestKilledWhileBuilding(t *testing.T) {
	need(t)
	linuxtest.NoLeaks(t, "")
	b, err := open(t, "spawner", newPlan(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	first := make(chan struct{}, 20)
	for range 20 {
		wg.Go(func() {
			ours, theirs := link(t)
			s, err := b.Build(t.Context(), anyOrder, fence.Handles{Link: theirs, Group: -1})
			first <- struct{}{}
			_, _ = unix.Close(ours), unix.Close(theirs)
			switch {
			case err == nil:
				ended(t, s.Process)
				_ = unix.Close(s.Process)
			case !errors.Is(err, fence.ErrEnded):
				t.Errorf("build: %v", err)
			}
		})
	}
	<-first
	if err := unix.Kill(spawnerPID(t), unix.SIGKILL); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

func TestCanceled(t *testing.T) {
	need(t)
	linuxtest.NoLeaks(t, "")
	b, err := open(t, "spawner", newPlan(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	spawner := spawnerPID(t)
	for i := range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		ours, theirs := link(t)
		o := anyOrder
		o.Handles = true
		if i%2 == 0 {
			cancel()
		} else {
			go cancel()
		}
		s, err := b.Build(ctx, o, fence.Handles{Link: theirs, Group: -1})
		cancel()
		_, _ = unix.Close(ours), unix.Close(theirs)
		if err == nil { // it was faster
			for _, fd := range append(s.Handles, s.Process) {
				_ = unix.Close(fd)
			}
		} else if !errors.Is(err, context.Canceled) {
			t.Errorf("build: %v", err)
		}
	}
	build(t, b, anyOrder).end(t) // all answers before it have come
	eventually(t, "all sandboxes are gone", func() bool { return len(children(spawner)) == 0 })
}

func TestClosed(t *testing.T) {
	need(t)
	linuxtest.NoLeaks(t, "")
	b, err := open(t, "spawner", newPlan(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	s := build(t, b, anyOrder)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Resize(t.Context(), nil, room(1)); !errors.Is(err, fence.ErrEnded) {
		t.Errorf("resize: %v", err)
	}
	if got, _ := s.run(t, "echo still here"); got != "still here\n" {
		t.Errorf("the sandbox says %q", got)
	}
}

// pids are those of what a host started.
type pids struct{ Spawner, Sandbox int }

// playHost is a host that launches a spawner, makes a sandbox and waits to be
// killed.
func playHost(args []string) error {
	executable, err := unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	proc, err := unix.Open("/proc", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	b, err := fence.Launch(newPlan(args[0]), executable, proc)
	if err != nil {
		return err
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	s, err := b.Build(context.Background(), anyOrder, fence.Handles{Link: fds[1], Group: -1})
	if err != nil {
		return err
	}
	_ = unix.Close(fds[1])
	found := pids{Sandbox: s.PID}
	if list := children(os.Getpid()); len(list) == 1 {
		found.Spawner = list[0]
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func TestHostGone(t *testing.T) {
	need(t)
	linuxtest.NoLeaks(t, "")
	in, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, say, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _, _ = hold.Close(), out.Close(), in.Close() }()
	var errs strings.Builder
	cmd := linuxtest.Start(t, linuxtest.Child{Name: "host", Args: []string{t.TempDir()}, Stdin: in}, say, &errs)
	_ = say.Close()
	var found pids
	if err := json.NewDecoder(out).Decode(&found); err != nil {
		_ = cmd.Wait()
		t.Fatalf("%v: %s", err, errs.String())
	}
	var handles []int
	for _, pid := range []int{found.Spawner, found.Sandbox} {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.Fatalf("process %d: %v", pid, err)
		}
		defer func() { _ = unix.Close(fd) }()
		handles = append(handles, fd)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for _, fd := range handles {
		ended(t, fd)
	}
}

// raw starts a spawner to which the test itself speaks.
func raw(t *testing.T) (socket int, proc *os.Process) {
	t.Helper()
	ours, theirs := link(t)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	other := os.NewFile(uintptr(theirs), "spawner")
	defer func() { _, _ = null.Close(), other.Close() }()
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	if !root() {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	linuxtest.Lasting(func() {
		proc, err = os.StartProcess("/proc/self/exe", []string{fence.Name}, &os.ProcAttr{
			Dir: "/", Env: newPlan("").Env, Files: []*os.File{null, null, null, other}, Sys: attr,
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return ours, proc
}

// over waits for a spawner's end and returns its exit code.
func over(t *testing.T, socket int, proc *os.Process) int {
	t.Helper()
	_ = unix.Close(socket)
	state, err := proc.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return state.ExitCode()
}

// hears returns what an answer says was refused.
func hears(t *testing.T, socket int) error {
	t.Helper()
	text, files, err := fence.Receive(socket, make([]byte, fence.MaxPacket))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 0 {
		t.Errorf("%d files came", len(files))
	}
	_, _, failed, err := fence.DecodeAnswer(text)
	if err != nil {
		t.Fatal(err)
	}
	return failed
}

func TestMalformedPlans(t *testing.T) {
	need(t)
	linuxtest.NoLeaks(t, "")
	executable, proc := opened(t)
	good := fence.EncodePlan(newPlan(t.TempDir()))
	for name, c := range map[string]struct {
		text  []byte
		files []int
	}{
		"no plan":       {[]byte("hello"), []int{executable, proc}},
		"no files":      {good, nil},
		"too many":      {good, []int{proc, proc, proc}},
		"cut":           {good[:len(good)-1], []int{executable, proc}},
		"no such stage": {fence.EncodePlan(newPlan("/no/such")), []int{executable, proc}},
	} {
		t.Run(name, func(t *testing.T) {
			socket, spawner := raw(t)
			if err := fence.Send(socket, c.text, c.files...); err != nil {
				t.Fatal(err)
			}
			if err := hears(t, socket); err == nil {
				t.Error("it was taken")
			}
			if code := over(t, socket, spawner); code != 1 {
				t.Errorf("exit code %d", code)
			}
		})
	}
	t.Run("silence", func(t *testing.T) {
		socket, spawner := raw(t)
		if code := over(t, socket, spawner); code != 1 {
			t.Errorf("exit code %d", code)
		}
	})
}

func TestMalformedRequests(t *testing.T) {
	need(t)
	linuxtest.NoLeaks(t, "")
	executable, proc := opened(t)
	socket, spawner := raw(t)
	if err := fence.Send(socket, fence.EncodePlan(newPlan(t.TempDir())), executable, proc); err != nil {
		t.Fatal(err)
	}
	if err := hears(t, socket); err != nil {
		t.Fatal(err)
	}
	resize := fence.EncodeRequest(4, nil, false, room(1<<20))
	shown, mapped := anyOrder, anyOrder
	shown.Volumes = []fence.Volume{{Source: "/proc", Target: "/x"}}
	mapped.Volumes = []fence.Volume{{Source: "/proc", Target: "/x", Mapped: true}}
	nothing := append([]byte{4, 0}, resize[2:]...) // an id, and the kind 0
	for name, c := range map[string]struct {
		text  []byte
		files []int
	}{
		"build without a link":           {fence.EncodeRequest(1, &anyOrder, false, fence.Places{}), nil},
		"build without a group":          {fence.EncodeRequest(2, &anyOrder, true, fence.Places{}), []int{proc}},
		"build without its volume":       {fence.EncodeRequest(5, &shown, false, fence.Places{}), []int{proc}},
		"build without the users of one": {fence.EncodeRequest(6, &mapped, false, fence.Places{}), []int{proc, proc}},
		"resize of nothing":              {resize, nil},
		"resize of no place":             {resize, []int{proc, proc}},
		"nothing":                        {nothing, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if err := fence.Send(socket, c.text, c.files...); err != nil {
				t.Fatal(err)
			}
			if err := hears(t, socket); err == nil {
				t.Error("it was done")
			}
		})
	}
	if err := fence.Send(socket, []byte("hello"), proc); err != nil {
		t.Fatal(err)
	}
	if _, _, err := fence.Receive(socket, make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after something else: %v", err)
	}
	if code := over(t, socket, spawner); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestReceiveBounds(t *testing.T) {
	linuxtest.NoLeaks(t, "")
	a, b := link(t)
	defer func() { _, _ = unix.Close(a), unix.Close(b) }()
	if err := fence.Send(a, []byte("too long"), a); err != nil {
		t.Fatal(err)
	}
	if _, files, err := fence.Receive(b, make([]byte, 3)); err == nil || files != nil {
		t.Errorf("more than there is room for: %v %v", files, err)
	}
	many := make([]int, fence.MaxFiles+1)
	for i := range many {
		many[i] = a
	}
	if err := fence.Send(a, []byte("x"), many...); err != nil {
		t.Fatal(err)
	}
	if _, files, err := fence.Receive(b, make([]byte, 3)); err == nil || files != nil {
		t.Errorf("more files than there may be: %v %v", files, err)
	}
	if err := fence.Send(-1, []byte("x")); !errors.Is(err, unix.EBADF) {
		t.Errorf("send: %v", err)
	}
	if _, _, err := fence.Receive(-1, make([]byte, 3)); !errors.Is(err, unix.EBADF) {
		t.Errorf("receive: %v", err)
	}
}

// TestRejoin: a spawner that is left lives on for who has a link to it, and does
// not mistake answers.
func TestRejoin(t *testing.T) {
	need(t)
	linuxtest.NoLeaks(t, "")
	b, err := open(t, "spawner", newPlan(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	first, ok := b.(*fence.Spawner)
	if !ok {
		t.Fatalf("%T", b)
	}
	pid := spawnerPID(t)
	s := build(t, b, anyOrder)
	socket, process, err := first.Link()
	if err != nil {
		t.Fatal(err)
	}
	first.Leave()
	if _, _, err := first.Link(); !errors.Is(err, fence.ErrEnded) {
		t.Errorf("link: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	second, err := fence.Rejoin(socket, process)
	if err != nil {
		t.Fatal(err)
	}
	made, err := second.Do(t.Context(), fence.Job{Kind: fence.JobStore, To: "0", Bounds: fence.Bounds{Size: 1 << 20, Files: 10}}, nil)
	if err != nil || len(made.Files) != 1 {
		t.Fatalf("%d files, %v", len(made.Files), err)
	}
	for _, j := range []fence.Job{{Kind: fence.JobErase, Bounds: fence.Bounds{Size: 2 << 20, Files: 20}}, {Kind: fence.JobErase, Name: "0"}} {
		if _, err := second.Do(t.Context(), j, made.Files); err != nil {
			t.Error(err)
		}
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(made.Files[0], &st); err != nil || int64(st.Blocks)*st.Bsize != 2<<20 {
		t.Errorf("the store has %d blocks, %v", st.Blocks, err)
	}
	_ = unix.Close(made.Files[0])
	if socket, process, err = second.Link(); err != nil {
		t.Fatal(err)
	}
	second.Leave()
	third, err := fence.Rejoin(socket, process)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := s.run(t, "echo still here"); got != "still here\n" {
		t.Errorf("the sandbox says %q", got)
	}
	if err := third.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	eventually(t, "the spawner is gone", func() bool { return unix.Kill(pid, 0) != nil })
}
