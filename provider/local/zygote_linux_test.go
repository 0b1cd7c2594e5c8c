package local_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// preloads is a template whose interpreters have modules imported.
type preloads struct{}

func (preloads) Lacking() []string { return nil }

func (preloads) Names() []string { return []string{"data"} }

func (preloads) Get(name string) (local.Template, error) {
	return local.Template{Name: name, Kind: local.KindHost, Preload: map[string][]string{"python": {"decimal"}}}, nil
}

// nestBound is what programs of these tests may use.
var nestBound = cove.Resources{CPUs: 1, Memory: cove.GiB, PIDs: 64}

// openNest opens a provider with such a template.
func openNest(t *testing.T) cove.Provider {
	t.Helper()
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		linuxtest.Need(t, err)
	}
	p, err := local.New(local.Config{Dir: providertest.Dir(t), Templates: preloads{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	providertest.Ready(t, p)
	return p
}

// nestSpare prepares a sandbox of the template.
func nestSpare(t *testing.T, p cove.Provider) cove.Spare {
	t.Helper()
	preparer, _ := cove.As[cove.Preparer](p)
	s, err := preparer.Prepare(t.Context(), cove.Mold{Provider: p.Name(), Template: "data", Workspace: cove.WorkspaceMemory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Discard(context.Background()) })
	return s
}

// planted is an interpreter that was forked into a spare.
type planted struct {
	cove.Process

	in       io.WriteCloser
	out, err buffer
	late     *time.Timer // kills it; nil: nothing does
}

// buffer is a bytes.Buffer for several, or a way to another writer.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
	to io.Writer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.to != nil {
		return b.to.Write(p)
	}
	return b.b.Write(p)
}

// lead makes it the way to a writer.
func (b *buffer) lead(to io.Writer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.to = to; to == nil {
		b.to = io.Discard
	}
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func command(p *planted, code string) cove.Command {
	r, w := io.Pipe()
	p.in = w
	return cove.Command{Argv: []string{"python3", "-I", "-c", code}, Dir: "/", Stdin: r, Stdout: &p.out, Stderr: &p.err}
}

// plantIn forks an interpreter into a spare.
func plantIn(ctx context.Context, s cove.Spare, r cove.Resources, code string) (*planted, error) {
	p := &planted{}
	ahead, ok := s.(cove.SparePreloader)
	if !ok {
		return nil, cove.Errorf(cove.Unsupported, "%T preloads nothing", s)
	}
	var err error
	p.Process, err = ahead.StartPreloaded(ctx, command(p, code), r, []string{"decimal", "no_such_module"})
	return p, err
}

func plant(t *testing.T, s cove.Spare, code string) *planted {
	t.Helper()
	p, err := plantIn(t.Context(), s, nestBound, code)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ended waits for the end of an interpreter.
func (p *planted) ended(t *testing.T) cove.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := p.Wait(ctx)
	if err != nil {
		t.Fatalf("%v; it wrote %s%s", err, p.out.String(), p.err.String())
	}
	return r
}

// portrait says all that the kernel lets a program know of itself, and what Python
// does.
const portrait = `import json, os, sys, time
def text(name):
    with open("/proc/self/" + name) as f: return f.read()
status = dict(l.split(":", 1) for l in text("status").splitlines())
limits = {l[:26].strip(): l[26:].split() for l in text("limits").splitlines()[1:]}
processes = int(limits.pop("Max processes")[0])
own = os.stat("/proc/self/status")
refused = {}
for name, do in {
    "mount": lambda: os.open("/proc/1/root/etc", os.O_RDONLY), "mknod": lambda: os.mknod("/tmp/n", 0o20666, os.makedev(1, 1)), "setuid": lambda: os.setuid(0),
    "chroot": lambda: os.chroot("/"), "setgroups": lambda: os.setgroups([0]), "write": lambda: open("/etc/x", "w"), "exe": lambda: open("/proc/self/exe", "r+b"),
    "nice": lambda: os.nice(-1), "signal": lambda: os.kill(1, 9),
}.items():
    try: refused[name] = repr(do())
    # The file that a forked one executes is not in its mounts: another part of the fence refuses.
    except OSError as e: refused[name] = e.strerror if name != "exe" else "refused"
for _ in range(1000): # what forked it goes at once, and may need its turn for that
    if os.getppid() == 1: break
    time.sleep(.01)
print(json.dumps({
    "status": {k: status[k].strip() for k in status if k[:3] in ("Uid", "Gid", "Gro", "Cap", "NoN", "Sec", "Thr") or k in ("SigBlk", "SigPnd", "SigIgn", "Umask", "Cpus_allowed")},
    "spaces": {n: os.readlink("/proc/self/ns/" + n) for n in os.listdir("/proc/self/ns")},
    "limits": limits, "many": 64 < processes < 128, "groups": text("cgroup"), "mounts": text("mountinfo"),
    "score": text("oom_score_adj"), "owner": [own.st_uid, own.st_gid], "parent": os.getppid(), "leads": os.getpgid(0) == os.getpid(),
    "files": sorted(os.readlink("/proc/self/fd/%d" % n).split(":")[0] for n in range(3)), "more": len(os.listdir("/proc/self/fd")),
    "dir": os.getcwd(), "root": os.readlink("/proc/self/root"), "exe": os.readlink("/proc/self/exe"), "env": sorted(os.environ.items()),
    "flags": repr(sys.flags), "path": sys.path, "argv": sys.argv, "names": sorted(n for n in globals() if n.startswith("__")), "refused": refused,
}))`

// TestForkedInterpretersAreLikeStartedOnes: whatever the fence gives to a program
// that the agent starts, it gives to one that comes from outside, also where the
// server was started with nohup.
func TestForkedInterpretersAreLikeStartedOnes(t *testing.T) {
	signal.Ignore(unix.SIGHUP)
	t.Cleanup(func() { signal.Reset(unix.SIGHUP) })
	s := nestSpare(t, openNest(t))
	started := &planted{}
	proc, err := s.(cove.SpareStarter).StartIn(t.Context(), command(started, portrait), nestBound)
	if err != nil {
		t.Fatal(err)
	}
	started.Process = proc
	var pictures [2]map[string]any
	for i, p := range []*planted{started, plant(t, s, portrait)} {
		if r := p.ended(t); r.Outcome != cove.Exited || r.ExitCode != 0 {
			t.Fatalf("%+v: %s", r, p.err.String())
		}
		if err := json.Unmarshal([]byte(p.out.String()), &pictures[i]); err != nil {
			t.Fatalf("%v: %s", err, p.out.String())
		}
	}
	if d := gocmp.Diff(pictures[0], pictures[1]); d != "" {
		t.Errorf("the forked one differs (-started +forked):\n%s", d)
	}
	if many, _ := pictures[1]["many"].(bool); !many {
		t.Error("it may have any number of processes")
	}
}

// TestForkedInterpretersThatEndAtOnce: an interpreter that has nothing to do is a program
// of the sandbox before it ends, also while the agent reaps others.
func TestForkedInterpretersThatEndAtOnce(t *testing.T) {
	s := nestSpare(t, openNest(t))
	over := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			p, err := s.(cove.SpareStarter).StartIn(t.Context(), cove.Command{Argv: []string{"true"}}, nestBound)
			if err == nil {
				_, err = p.Wait(t.Context())
			}
			if err != nil {
				t.Errorf("another program: %v", err)
				return
			}
		}
	})
	for range 40 {
		if r := plant(t, s, "pass").ended(t); r.Outcome != cove.Exited || r.ExitCode != 0 {
			t.Errorf("%+v", r)
		}
	}
	close(over)
	others.Wait()
}

func TestForkedInterpretersAreProgramsOfTheSandbox(t *testing.T) {
	p := openNest(t)
	s := nestSpare(t, p)
	exits := plant(t, s, "import sys, decimal; print(decimal.Decimal(1)); sys.exit(sys.stdin.read() and 7)")
	_, _ = io.WriteString(exits.in, "x")
	_ = exits.in.Close()
	if r := exits.ended(t); r.Outcome != cove.Exited || r.ExitCode != 7 || exits.out.String() != "1\n" || r.PeakMemory == 0 {
		t.Errorf("%+v, %q, %q", r, exits.out.String(), exits.err.String())
	}
	// It stays when the spare is claimed, and is killed with all that it started.
	stays := plant(t, s, "import subprocess, sys, time\nsubprocess.Popen(['sleep', '1000'])\nsys.stdin.readline()\nprint('on', flush=True)\ntime.sleep(1000)")
	box, err := s.Claim(t.Context(), cove.NewID(), cove.Spec{Template: "data", Resources: nestBound, Workspace: cove.Workspace{Kind: cove.WorkspaceMemory}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = box.Destroy(context.Background()) }()
	_, _ = io.WriteString(stays.in, "go\n")
	until(t, func() bool { return stays.out.String() == "on\n" })
	if err := stays.Signal(t.Context(), "TERM"); err != nil {
		t.Error(err)
	}
	if r := stays.ended(t); r.Signal != "TERM" {
		t.Errorf("%+v", r)
	}
	if err := stays.Kill(t.Context()); err != nil {
		t.Error(err)
	}
	if left := inside(t, box, "pgrep -c sleep || true"); left != "0\n" {
		t.Errorf("%s sleep on", left)
	}
	_, err = plantIn(t.Context(), s, nestBound, "1")
	if cove.CodeOf(err) != cove.Conflict {
		t.Errorf("into a sandbox that is somebody's: %v", err)
	}
}

func TestProgramsThatAreNotForked(t *testing.T) {
	p := openNest(t)
	s := nestSpare(t, p)
	ahead, _ := s.(cove.SparePreloader)
	for name, argv := range map[string][]string{"shell": {"sh", "-c", "true"}, "not isolated": {"python3", "-c", "1"}, "arguments": {"python3", "-I", "-c", "1", "x"}} {
		if _, err := ahead.StartPreloaded(t.Context(), cove.Command{Argv: argv}, nestBound, []string{"decimal"}); cove.CodeOf(err) != cove.Unsupported {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ahead.StartPreloaded(t.Context(), cove.Command{Argv: []string{"python3", "-I", "-c", "1"}}, nestBound, nil); cove.CodeOf(err) != cove.Unsupported {
		t.Errorf("without streams: %v", err)
	}
	if _, err := ahead.StartPreloaded(t.Context(), cove.Command{Argv: []string{"python3.99", "-I", "-c", "1"}, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &buffer{}}, nestBound, nil); cove.CodeOf(err) != cove.Unsupported {
		t.Errorf("an interpreter that is not there: %v", err)
	}
	preparer, _ := cove.As[cove.Preparer](p)
	base, err := preparer.Prepare(t.Context(), cove.Mold{Provider: p.Name(), Template: "base", Workspace: cove.WorkspaceMemory})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = base.Discard(context.Background()) }()
	if _, err := plantIn(t.Context(), base, nestBound, "1"); cove.CodeOf(err) != cove.Unsupported {
		t.Errorf("into a template without modules: %v", err)
	}
}

// TestOneZygoteServesAll, and another one comes when it was killed.
// mayfly is a program that can be killed.
type mayfly struct {
	cove.Process

	killed bool
}

func (m *mayfly) Kill(context.Context) error {
	m.killed = true
	return nil
}

// Who hears of a conflict starts the program in another way, and that one would wait
// for what the first one has read.
func TestASpareThatIsClaimedWhileAProgramStarts(t *testing.T) {
	s := nestSpare(t, openNest(t))
	m := &mayfly{}
	_, err := local.StartBy(t.Context(), s, cove.Command{Argv: []string{"true"}}, nestBound, func(ctx context.Context, _ cove.Command) (cove.Process, error) {
		return m, s.Discard(ctx)
	})
	if cove.CodeOf(err) != cove.Unavailable || !m.killed {
		t.Fatalf("got %v, and killed is %v; want that it is unavailable, and killed", err, m.killed)
	}
}

func TestOneZygoteServesAll(t *testing.T) {
	p := openNest(t)
	for range 2 {
		if r := plant(t, nestSpare(t, p), "pass").ended(t); r.ExitCode != 0 {
			t.Errorf("%+v", r)
		}
	}
	first := zygotes(t)
	if len(first) != 1 {
		t.Fatalf("there are %v", first)
	}
	kill(t, first[0])
	until(t, func() bool { return len(zygotes(t)) == 0 })
	if r := plant(t, nestSpare(t, p), "pass").ended(t); r.ExitCode != 0 || len(zygotes(t)) != 1 {
		t.Errorf("%+v, %v", r, zygotes(t))
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	until(t, func() bool { return len(zygotes(t)) == 0 })
}

// zygotes returns the processes of this machine that are below us and were started
// as one. What they forked looks the same but for its namespaces.
func zygotes(t *testing.T) (pids []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		text, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(text), local.HatchCode) {
			continue
		}
		dir := filepath.Dir(name)
		if space, err := os.Readlink(dir + "/ns/pid"); err == nil && space == ownSpace(t) && descends(dir) {
			pids = append(pids, filepath.Base(dir))
		}
	}
	return pids
}

// descends reports whether this process has begun the one of a directory in /proc, or
// the one that has: the machine may have others.
func descends(dir string) bool {
	for range 8 {
		text, err := os.ReadFile(dir + "/status")
		_, after, ok := strings.Cut(string(text), "\nPPid:\t")
		if err != nil || !ok {
			return false
		}
		parent, _, _ := strings.Cut(after, "\n")
		if parent == strconv.Itoa(os.Getpid()) {
			return true
		}
		dir = "/proc/" + parent
	}
	return false
}

// until waits for something that is under way.
func until(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(20 * time.Second)
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("it does not happen")
		}
	}
}

// kill ends a process of the host.
func kill(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err == nil {
		err = unix.Kill(n, unix.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// inside runs a line in a sandbox and returns what it wrote.
func inside(t *testing.T, box cove.Sandbox, line string) string {
	t.Helper()
	var out buffer
	p, err := box.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", line}, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func ownSpace(t *testing.T) string {
	t.Helper()
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	return space
}

// TestForkedInterpretersUser is the same as an ordinary user.
func TestForkedInterpretersUser(t *testing.T) {
	linuxtest.Again(t, "^(TestForkedInterpretersAreLikeStartedOnes|TestForkedInterpretersAreProgramsOfTheSandbox)$")
}
