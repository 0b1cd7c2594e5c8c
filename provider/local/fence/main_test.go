//go:build linux

package fence_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/guest/agent"
	"github.com/cove-sandbox/cove/internal/linux/landlock"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/seccomp"
	"github.com/cove-sandbox/cove/internal/linux/userns"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

func TestMain(m *testing.M) {
	switch os.Args[0] {
	case agent.Name:
		os.Exit(agent.Main(agent.DefaultFD))
	case fence.Name:
		playSpawner()
	}
	linuxtest.Main(m, map[string]linuxtest.Func{"tests": linuxtest.Tests, "host": playHost})
}

// countersEnv names the directory to which a spawner writes its coverage.
const countersEnv = "COVE_FENCE_COUNTERS"

// playSpawner is the spawner. Its root is another one at the end, so it holds
// on to the directory.
func playSpawner() {
	dir, err := os.Open(os.Getenv(countersEnv))
	code := fence.Main(fence.DefaultFD)
	if err == nil && dir.Chdir() == nil {
		_ = os.Setenv("GOCOVERDIR", ".")
	}
	os.Exit(code)
}

// root says that these tests can give sandboxes users of their own.
func root() bool { return os.Geteuid() == 0 }

// need skips where no sandbox can be made.
func need(t testing.TB) {
	t.Helper()
	if root() {
		return
	}
	r := userns.Probe()
	linuxtest.Need(t, errors.Join(r.Create, r.Map, r.Mount, r.Proc))
}

// newPlan is that of a small sandbox.
func newPlan(stage string) *fence.Plan {
	p := &fence.Plan{
		Root: fence.Root{
			Stage: stage,
			Dirs: []fence.Dir{
				{Path: "/dev", Mode: 0o755},
				{Path: "/dev/pts", Mode: 0o755},
				{Path: "/dev/shm", Mode: 0o755},
				{Path: "/proc", Mode: 0o555},
				{Path: "/run", Mode: 0o755},
				{Path: "/tmp", Mode: 0o755},
				{Path: "/workspace", Mode: 0o755},
			},
			Links:   []fence.Link{{Path: "/dev/ptmx", To: "pts/ptmx"}},
			Files:   []fence.File{{Path: "/note", Text: []byte("read me\n")}},
			Binds:   []fence.Bind{{Source: "/usr", Path: "/usr", Dir: true}},
			Devices: []string{"null", "zero"},
		},
		Host: "fenced", Inside: 1000, Become: root(), Proc: true, Network: true, Groups: true, Landlock: landlock.Probe() == nil,
		Limits: []fence.Limit{{Resource: unix.RLIMIT_CORE, Most: 1}, {Resource: unix.RLIMIT_NOFILE, Most: 500}},
		Shared: fence.Bounds{Size: 1 << 20, Files: 100},
		Argv:   []string{agent.Name},
	}
	for _, dir := range []string{"/bin", "/lib", "/lib64"} {
		if to, err := os.Readlink(dir); err == nil {
			p.Root.Links = append(p.Root.Links, fence.Link{Path: dir, To: to})
		} else if _, err := os.Stat(dir); err == nil {
			p.Root.Binds = append(p.Root.Binds, fence.Bind{Source: dir, Path: dir, Dir: true})
		}
	}
	if !root() {
		p.Root.Evidence = "/run/proc"
	}
	// The race detector would have every process wait for a second at its end.
	p.Env = []string{"GORACE=atexit_sleep_ms=0"}
	if to := flag.Lookup("test.gocoverdir"); to != nil && to.Value.String() != "" && root() {
		p.Env = append(p.Env, countersEnv+"="+to.Value.String())
	}
	if filter, err := seccomp.Sandbox().Compile(); err == nil {
		p.Filter = filter.Bytes()
	}
	return p
}

// opened are the descriptors that a builder needs.
func opened(t testing.TB) (executable, proc int) {
	t.Helper()
	var fds [2]int
	for i, path := range []string{"/proc/self/exe", "/proc"} {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		fds[i] = fd
	}
	return fds[0], fds[1]
}

// builder is what both kinds have.
type builder interface {
	Build(ctx context.Context, o fence.Order, h fence.Handles) (fence.Sandbox, error)
	Resize(ctx context.Context, handles []int, to fence.Places) error
	OpenWays(ctx context.Context, process int, w fence.Ways) ([]int, error)
	Close() error
}

// direct builds in this process.
type direct struct{ *fence.Builder }

func (d direct) Build(_ context.Context, o fence.Order, h fence.Handles) (fence.Sandbox, error) {
	return d.Builder.Build(o, h)
}

func (d direct) Resize(_ context.Context, handles []int, to fence.Places) error {
	return fence.Resize(handles, to)
}

func (d direct) OpenWays(_ context.Context, process int, w fence.Ways) ([]int, error) {
	return fence.OpenWays(process, w)
}

// open makes one of the two builders, which the end of the test closes.
func open(t testing.TB, kind string, p *fence.Plan) (builder, error) {
	t.Helper()
	executable, proc := opened(t)
	var b builder
	if kind == "direct" {
		d, err := fence.NewBuilder(p, executable, proc)
		if err != nil {
			return nil, err
		}
		b = direct{d}
	} else {
		s, err := fence.Launch(p, executable, proc)
		if err != nil {
			return nil, err
		}
		b = s
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Errorf("close: %v", err)
		}
	})
	return b, nil
}

// builders runs a test with each kind.
func builders(t *testing.T, test func(t *testing.T, kind string)) {
	need(t)
	for _, kind := range []string{"direct", "spawner"} {
		t.Run(kind, func(t *testing.T) {
			if kind == "direct" {
				linuxtest.NeedRoot(t)
			}
			linuxtest.NoLeaks(t, "")
			test(t, kind)
		})
	}
}

// box is a sandbox with its agent.
type box struct {
	fence.Sandbox
	*guest.Conn
}

var anyOrder = fence.Order{Outside: 234_999, Places: room(1 << 20)}

// room is so much of everything.
func room(size int64) fence.Places {
	return fence.Places{Workspace: fence.Bounds{Size: size, Files: 50}, Temp: fence.Bounds{Size: size, Files: 50}}
}

// build makes a sandbox that ends with the test.
func build(t testing.TB, b builder, o fence.Order) *box {
	t.Helper()
	ours, theirs := link(t)
	s, err := b.Build(t.Context(), o, fence.Handles{Link: theirs, Group: -1})
	_ = unix.Close(theirs)
	if err != nil {
		_ = unix.Close(ours)
		t.Fatalf("build: %v", err)
	}
	tr, err := guest.Descriptors(ours)
	if err != nil {
		t.Fatal(err)
	}
	c, err := guest.Connect(t.Context(), tr, guest.Options{Env: map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin"}})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	box := &box{s, c}
	t.Cleanup(func() { box.end(t) })
	return box
}

func (b *box) end(t testing.TB) {
	_ = b.Close()
	ended(t, b.Process)
	_, _ = unix.Wait4(b.PID(), nil, 0, nil) // if it is ours
	_ = unix.Close(b.Process)
	for _, fd := range b.Handles {
		_ = unix.Close(fd)
	}
}

// PID is that of the host.
func (b *box) PID() int { return b.Sandbox.PID }

// run returns what a script prints, both streams, and its exit code.
func (b *box) run(t testing.TB, script string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	p, err := b.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", "exec 2>&1; " + script}, Stdout: &out})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	r, err := p.Wait(t.Context())
	if err != nil {
		t.Fatalf("wait: %v", err)
	}
	return out.String(), r.ExitCode
}

func link(t testing.TB) (ours, theirs int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fds[0], fds[1]
}

// patience bounds the wait for what must happen.
const patience = 30 * time.Second

// ended waits for the end of a process.
func ended(t testing.TB, pidfd int) {
	t.Helper()
	eventually(t, "a process ends", func() bool {
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0)
		return n > 0
	})
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("waited too long until %s", what)
		}
	}
}

// children are the processes that a process has started and not reaped.
func children(pid int) []int {
	var all []int
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		for word := range strings.FieldsSeq(string(text)) {
			if n, err := strconv.Atoi(word); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}

// spawnerPID finds the spawner of this process.
func spawnerPID(t testing.TB) int {
	t.Helper()
	for _, pid := range children(os.Getpid()) {
		text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if string(text) == fence.Name+"\x00" {
			return pid
		}
	}
	t.Fatal("there is no spawner")
	return 0
}
