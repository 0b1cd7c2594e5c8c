package local_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local"
)

// TestKeeperUser runs tests of keepers once more, as an ordinary user.
func TestKeeperUser(t *testing.T) {
	linuxtest.Again(t, "^(TestDiskBeyondARestart|TestKeptBeyondAKill|TestKeeperKilled|TestAllKilled|TestNobodyAnswers|TestKeeperOfARemovedDirectory)$")
}

// keeping is a configuration with a keeper.
func keeping(dir string) local.Config {
	cfg := config(dir)
	cfg.Keeper = true
	return cfg
}

// keeperPID is that of the keeper of a directory, 0 if there is none.
func keeperPID(dir string) int {
	text, _ := os.ReadFile(filepath.Join(dir, "keeper.lock"))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if !strings.HasPrefix(string(line), "cove-keeper\x00") {
		return 0
	}
	return pid
}

// safe is a writer that can be read meanwhile.
type safe struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// The programs that are kept in each sandbox.
const (
	counts   = "i=0; while ! [ -e stop ]; do i=$((i+1)); echo $i; echo $i >> counted; done; echo end >&2; exit 3"
	briefly  = "echo before; echo wrong >&2; exit 5"
	answers  = "while read word; do echo \"<$word>\"; done; echo over"
	terminal = "while read word; do stty size; done"
)

// found is what a process that is killed had.
type found struct {
	IDs       []cove.ID
	Processes []int // of the agents
}

// kept opens a provider, makes sandboxes with programs that are kept, and waits
// to be killed.
func kept(args []string) error {
	ctx := context.Background()
	p, err := local.New(keeping(args[0]))
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(args[1])
	var all found
	for i := range n {
		s, err := claimOrCreate(ctx, p, i%2 == 1)
		if err != nil {
			return err
		}
		if err := inhabit(ctx, s); err != nil {
			return err
		}
		all.IDs, all.Processes = append(all.IDs, s.ID()), append(all.Processes, local.PID(s))
	}
	if err := json.NewEncoder(os.Stdout).Encode(all); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func claimOrCreate(ctx context.Context, p *local.Provider, claim bool) (cove.Sandbox, error) {
	spec := cove.Spec{Env: map[string]string{"WHO": "me"}}
	if !claim {
		return p.Create(ctx, cove.NewID(), spec)
	}
	spare, err := p.Prepare(ctx, cove.Mold{Template: local.Base, Workspace: cove.WorkspaceMemory})
	if err != nil {
		return nil, err
	}
	return spare.Claim(ctx, cove.NewID(), spec)
}

// inhabit starts programs that are kept, and one that is not.
func inhabit(ctx context.Context, s cove.Sandbox) error {
	sh := func(keep, line string) cove.Command {
		return cove.Command{Argv: []string{"sh", "-c", line}, Stdout: &safe{}, Stderr: &safe{}, Keep: keep, Note: []byte("note of " + keep)}
	}
	in, typed := io.Pipe()
	answering := sh("answers", answers)
	out := &safe{}
	answering.Stdin, answering.Stdout = in, out
	tty := sh("terminal", terminal)
	tty.Stdin, _ = io.Pipe()
	tty.TTY = &cove.WindowSize{Cols: 80, Rows: 24}
	for _, cmd := range []cove.Command{sh("counts", counts), sh("briefly", briefly), answering, tty, sh("", "exec sleep 1000")} {
		if _, err := s.Start(ctx, cmd); err != nil {
			return err
		}
	}
	_, err := io.WriteString(typed, "one\n")
	return err
}

// killed runs a process that keeps sandboxes, and kills it.
func killed(t *testing.T, name string, args ...string) (all found) {
	t.Helper()
	in, hold, err := os.Pipe()
	must(t, err)
	out, say, err := os.Pipe()
	must(t, err)
	defer func() { _, _, _ = in.Close(), hold.Close(), out.Close() }()
	var errs strings.Builder
	cmd := linuxtest.Start(t, linuxtest.Child{Name: name, Args: args, Stdin: in}, say, &errs)
	_ = say.Close()
	if err := json.NewDecoder(out).Decode(&all); err != nil {
		_ = cmd.Wait()
		t.Fatalf("%v: %s", err, errs.String())
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	slices.Sort(all.IDs)
	return all
}

// resumed is a kept program with what it says.
type resumed struct {
	cove.Process

	out, errs *safe
}

func resume(t *testing.T, s cove.Sandbox, keep string, in io.Reader) resumed {
	t.Helper()
	r, ok := cove.As[cove.Resumer](s)
	if !ok {
		t.Fatal("the sandbox is no Resumer")
	}
	p := resumed{out: &safe{}, errs: &safe{}}
	var err error
	p.Process, err = r.Resume(t.Context(), keep, cove.Command{Stdin: in, Stdout: p.out, Stderr: p.errs})
	must(t, err)
	return p
}

func (r resumed) ends(t *testing.T, code int, out, errs string) {
	t.Helper()
	got, err := r.Wait(t.Context())
	must(t, err)
	if got.Outcome != cove.Exited || got.ExitCode != code || got.Wall <= 0 {
		t.Errorf("it ended as %+v", got)
	}
	if diff := cmp.Diff([2]string{out, errs}, [2]string{r.out.String(), r.errs.String()}); diff != "" {
		t.Errorf("output (-want +got):\n%.2000s", diff)
	}
}

func run(t *testing.T, s cove.Sandbox, line string) string {
	t.Helper()
	var out bytes.Buffer
	p, err := s.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", line}, Stdout: &out, Stderr: &out})
	must(t, err)
	_, err = p.Wait(t.Context())
	must(t, err)
	return out.String()
}

func keptNames(t *testing.T, s cove.Sandbox) (all []string) {
	t.Helper()
	r, _ := cove.As[cove.Resumer](s)
	for k, err := range r.Kept(t.Context()) {
		must(t, err)
		if string(k.Note) != "note of "+k.Keep {
			t.Errorf("the note of %s is %q", k.Keep, k.Note)
		}
		all = append(all, k.Keep)
	}
	return all
}

func TestKeptBeyondAKill(t *testing.T) {
	dir := t.TempDir()
	cfg := keeping(dir)
	all := killed(t, "kept", dir, "4")
	p := provider(t, cfg)
	if got := ids(t, p); !cmp.Equal(all.IDs, got) {
		t.Errorf("listed are %v, made were %v", got, all.IDs)
	}
	_, err := p.Create(t.Context(), all.IDs[0], cove.Spec{})
	wants(t, cove.Conflict, err, "create")
	for _, id := range all.IDs {
		s, err := p.Attach(t.Context(), id)
		must(t, err)
		visit(t, s)
		must(t, s.Destroy(t.Context()))
	}
	if got := ids(t, p); len(got) != 0 {
		t.Errorf("listed are %v", got)
	}
	must(t, p.Close())
	ends(t, "the keeper ends, which has nothing to keep", func() bool { return keeperPID(dir) == 0 })
	for _, pid := range all.Processes {
		if !gone(pid) {
			t.Errorf("agent %d is left", pid)
		}
	}
}

// visit looks at everything in a sandbox of a process that was killed.
func visit(t *testing.T, s cove.Sandbox) {
	t.Helper()
	if diff := cmp.Diff([]string{"answers", "briefly", "counts", "terminal"}, keptNames(t, s)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if got := run(t, s, "echo $WHO; id -u; cat /proc/*/cmdline | tr '\\0' ' ' | grep -c 'sleep 1[0]00'"); got != "me\n1000\n0\n" {
		t.Errorf("the sandbox says %q", got)
	}
	resume(t, s, "briefly", nil).ends(t, 5, "before\n", "wrong\n")

	in, typed := io.Pipe()
	a := resume(t, s, "answers", in)
	_, err := io.WriteString(typed, "two\n")
	must(t, err)
	must(t, typed.Close())
	a.ends(t, 0, "<one>\n<two>\nover\n", "")

	in, typed = io.Pipe()
	tty := resume(t, s, "terminal", in)
	must(t, tty.Resize(t.Context(), cove.WindowSize{Cols: 100, Rows: 30}))
	_, err = io.WriteString(typed, "size\n")
	must(t, err)
	ends(t, "the terminal has its size", func() bool { return strings.Contains(tty.out.String(), "30 100") })
	must(t, tty.Kill(t.Context()))
	if r, err := tty.Wait(t.Context()); err != nil || r.Outcome != cove.Killed {
		t.Errorf("the terminal ended as %+v, %v", r, err)
	}
	_ = typed.Close()

	c := resume(t, s, "counts", nil)
	run(t, s, "touch stop")
	if r, err := c.Wait(t.Context()); err != nil || r.ExitCode != 3 {
		t.Errorf("it ended as %+v, %v", r, err)
	}
	if want := run(t, s, "cat counted"); want == "" || c.out.String() != want || c.errs.String() != "end\n" {
		t.Errorf("of %d bytes %d came, and %q", len(want), len(c.out.String()), c.errs.String())
	}
	again := resume(t, s, "counts", nil) // until it is forgotten
	again.ends(t, 3, c.out.String(), "end\n")
	r, _ := cove.As[cove.Resumer](s)
	for _, name := range []string{"counts", "answers", "unknown"} {
		must(t, r.Forget(t.Context(), name))
	}
	_, err = r.Resume(t.Context(), "counts", cove.Command{})
	wants(t, cove.NotFound, err, "resuming what is forgotten")
	if diff := cmp.Diff([]string{"briefly", "terminal"}, keptNames(t, s)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

func TestKeeperKilled(t *testing.T) {
	dir := t.TempDir()
	p := provider(t, keeping(dir))
	s := create(t, p)
	run, err := s.Start(t.Context(), cove.Command{Argv: []string{"sleep", "1000"}, Keep: "sleeps"})
	must(t, err)
	agent := local.PID(s)
	must(t, unix.Kill(keeperPID(dir), unix.SIGKILL))
	m, _ := cove.As[cove.Mortal](s)
	<-m.Died()
	_, err = run.Wait(t.Context())
	wants(t, cove.Unavailable, err, "waiting for a program of it")
	_, err = s.Start(t.Context(), cove.Command{Argv: []string{"true"}})
	wants(t, cove.Unavailable, err, "starting another")
	must(t, s.Destroy(t.Context()))
	if !gone(agent) {
		t.Error("its agent lives")
	}
	if got := ids(t, p); len(got) != 0 {
		t.Errorf("listed are %v", got)
	}
	says(t, create(t, p)) // with another keeper
	for _, id := range ids(t, p) {
		must(t, p.Remove(t.Context(), id))
	}
}

func TestAllKilled(t *testing.T) {
	dir := t.TempDir()
	all := killed(t, "kept", dir, "2")
	must(t, unix.Kill(keeperPID(dir), unix.SIGKILL))
	for _, pid := range all.Processes {
		ends(t, "the agents are gone", func() bool { return gone(pid) })
	}
	p := provider(t, keeping(dir))
	for _, id := range all.IDs {
		_, err := p.Attach(t.Context(), id)
		wants(t, cove.NotFound, err, "attach")
	}
	for _, id := range ids(t, p) {
		must(t, p.Remove(t.Context(), id))
	}
	if got := ids(t, p); len(got) != 0 {
		t.Errorf("listed are %v", got)
	}
	says(t, create(t, p))
	for _, id := range ids(t, p) {
		must(t, p.Remove(t.Context(), id))
	}
}

// gone reports whether a process has ended.
func gone(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(text), ") Z ")
}

// TestNobodyAnswers is about sandboxes whose agents die while nobody looks.
func TestNobodyAnswers(t *testing.T) {
	dir := t.TempDir()
	all := killed(t, "kept", dir, "2")
	for _, pid := range all.Processes {
		must(t, unix.Kill(pid, unix.SIGKILL))
	}
	p := provider(t, keeping(dir))
	_, err := p.Attach(t.Context(), all.IDs[0])
	wants(t, cove.NotFound, err, "attach")
	if !strings.Contains(cove.MessageOf(err), "agent is gone") {
		t.Errorf("the cause is not said: %v", err)
	}
	must(t, p.Remove(t.Context(), all.IDs[1]))
	if got := ids(t, p); len(got) != 0 {
		t.Errorf("listed are %v", got)
	}
}

// TestDiskBeyondARestart is about a workspace on disk whose sandbox outlives its
// provider: it is counted as before, and goes with the sandbox.
func TestDiskBeyondARestart(t *testing.T) {
	cfg := keeping(t.TempDir())
	p := provider(t, cfg)
	caps, err := p.Probe(t.Context())
	must(t, err)
	if _, ok := caps.Workspaces[cove.WorkspaceDisk]; !ok {
		t.Skip("there are no disk workspaces here")
	}
	s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Workspace: cove.Workspace{Kind: cove.WorkspaceDisk, Size: 32 * cove.MiB, Files: 100}})
	must(t, err)
	must(t, s.Files().Write(t.Context(), "f", strings.NewReader("kept"), 0o600))
	run(t, s, "sync")
	before, err := s.Usage(t.Context())
	must(t, err)
	must(t, p.Close())
	p = provider(t, cfg)
	again, err := p.Attach(t.Context(), s.ID())
	must(t, err)
	if got := run(t, again, "cat f"); got != "kept" {
		t.Errorf("the file holds %q", got)
	}
	after, err := again.Usage(t.Context())
	must(t, err)
	if diff := cmp.Diff([2]int64{int64(before.Disk), before.Files}, [2]int64{int64(after.Disk), after.Files}); diff != "" {
		t.Errorf("usage (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(s.Isolation(), again.Isolation()); diff != "" {
		t.Errorf("isolation (-before +after):\n%s", diff)
	}
	must(t, again.Destroy(t.Context()))
	pid := keeperPID(cfg.Dir)
	must(t, p.Close())
	ends(t, "the keeper is gone", func() bool { return unix.Kill(pid, 0) != nil })
	if left, _ := os.ReadDir(filepath.Join(cfg.Dir, "disks")); slices.ContainsFunc(left, func(e os.DirEntry) bool { return cove.ID(e.Name()).Valid() }) {
		t.Errorf("left are %v", left)
	}
}
