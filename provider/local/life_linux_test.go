package local_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/local/fence"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// TestLifeUser runs tests of this package once more, as an ordinary user.
func TestLifeUser(t *testing.T) {
	linuxtest.Again(t, "^(TestCrash|TestSpawnerKilled|TestSpawnerKilledWhileMaking|TestAgentKilled|TestCloseWhileMaking|TestClosed|TestConfig|TestRefusals|TestSpares|TestNoProc|TestVolumeTargets|TestVolumeSources|TestVolumeReadOnly|TestVolumeOfSpare|TestDiskCrash|TestDiskGone|TestRemoveTree|TestSoft|TestMeasure)$")
}

// config is one that shares nothing with other providers.
func config(dir string) local.Config {
	return local.Config{Dir: dir, Users: filepath.Join(dir, "users")}
}

// provider opens one that the end of the test closes, and looks at what is left
// after it.
func provider(t *testing.T, cfg local.Config) *local.Provider {
	t.Helper()
	linuxtest.NoLeaks(t, local.GroupName(cfg.Dir))
	p, err := local.New(cfg)
	must(t, err)
	providertest.Ready(t, p)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p
}

func create(t *testing.T, p cove.Provider) cove.Sandbox {
	t.Helper()
	s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{})
	must(t, err)
	return s
}

// says demands that a program in the sandbox prints a word.
func says(t *testing.T, s cove.Sandbox) {
	t.Helper()
	var out bytes.Buffer
	p, err := s.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", "echo $((40 + 2)) > f; cat f; id -u"}, Stdout: &out})
	must(t, err)
	if _, err := p.Wait(t.Context()); err != nil || out.String() != "42\n1000\n" {
		t.Errorf("the sandbox says %q, %v", out.String(), err)
	}
}

func ids(t *testing.T, p cove.Provider) (all []cove.ID) {
	t.Helper()
	for id, err := range p.List(t.Context()) {
		must(t, err)
		all = append(all, id)
	}
	slices.Sort(all)
	return all
}

func wants(t *testing.T, code cove.Code, err error, what string) {
	t.Helper()
	if cove.CodeOf(err) != code {
		t.Errorf("%s gives %v; want an error with code %s", what, err, code)
	}
}

// spawner finds the spawner of a process; 0 if it has none.
func spawner(of int) int {
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(of) + "/task/*/children")
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		for word := range strings.FieldsSeq(string(text)) {
			line, _ := os.ReadFile("/proc/" + word + "/cmdline")
			if pid, err := strconv.Atoi(word); err == nil && string(line) == fence.Name+"\x00" {
				return pid
			}
		}
	}
	return 0
}

// ends waits until something holds.
func ends(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("waited too long until %s", what)
		}
	}
}

// left is what a process that crashes had.
type left struct {
	IDs       []cove.ID
	Processes []int
	Groups    bool
}

// crash opens a provider, makes two sandboxes and a spare, and waits to be
// killed.
func crash(args []string) error {
	ctx := context.Background()
	cfg := config(args[0])
	cfg.Once = args[1] == "once"
	p, err := local.New(cfg)
	if err != nil {
		return err
	}
	l := left{}
	spec := cove.Spec{}
	if args[1] == "disk" {
		spec = small(cove.MiB, 16)
	}
	for range 2 {
		s, err := p.Create(ctx, cove.NewID(), spec)
		if err != nil {
			return err
		}
		if _, err := s.Start(ctx, cove.Command{Argv: []string{"sleep", "1000"}}); err != nil {
			return err
		}
		l.IDs, l.Processes = append(l.IDs, s.ID()), append(l.Processes, local.PID(s))
	}
	switch args[1] {
	case "paused":
		return l.pause(ctx, p)
	case "disk":
		return l.wait(p)
	}
	spare, err := p.Prepare(ctx, cove.Mold{Template: local.Base, Workspace: cove.WorkspaceMemory})
	if err != nil {
		return err
	}
	l.IDs, l.Processes = append(l.IDs, local.SpareName(spare)), append(l.Processes, local.SparePID(spare))
	return l.wait(p)
}

// wait says what there is and waits to be killed.
func (l left) wait(p *local.Provider) error {
	if pid := spawner(os.Getpid()); pid != 0 {
		l.Processes = append(l.Processes, pid)
	}
	l.Groups = local.Groups(p)
	if err := json.NewEncoder(os.Stdout).Encode(l); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func TestCrash(t *testing.T) {
	for _, kind := range []string{"spawner", "once"} {
		t.Run(kind, func(t *testing.T) {
			cfg := config(t.TempDir())
			cfg.Once = kind == "once" // a directory is always used in the same way
			p := provider(t, cfg)
			must(t, p.Close()) // it is the other process's turn
			l := crashed(t, cfg.Dir, kind)
			p = provider(t, cfg)
			slices.Sort(l.IDs)
			if !l.Groups {
				l.IDs = nil // of what is all in memory nothing is left
			}
			if got := ids(t, p); !cmp.Equal(l.IDs, got) {
				t.Errorf("listed are %v, left were %v", got, l.IDs)
			}
			for _, id := range l.IDs {
				_, err := p.Attach(t.Context(), id)
				wants(t, cove.NotFound, err, "attach")
				_, err = p.Create(t.Context(), id, cove.Spec{})
				wants(t, cove.Conflict, err, "create")
				must(t, p.Remove(t.Context(), id))
				must(t, p.Remove(t.Context(), id))
			}
			if got := ids(t, p); len(got) != 0 {
				t.Errorf("listed are %v", got)
			}
			says(t, create(t, p))
		})
	}
}

// crashed is what a process had that was killed, when all of its own are gone.
func crashed(t *testing.T, dir, kind string) (l left) {
	t.Helper()
	return crashedNow(t, dir, kind, true)
}

// crashedNow is what a process had that was killed; wait says whether to wait
// until all of its own are gone.
func crashedNow(t *testing.T, dir, kind string, wait bool) (l left) {
	t.Helper()
	in, hold, err := os.Pipe()
	must(t, err)
	out, say, err := os.Pipe()
	must(t, err)
	defer func() { _, _, _ = in.Close(), hold.Close(), out.Close() }()
	var errs strings.Builder
	cmd := linuxtest.Start(t, linuxtest.Child{Name: "crash", Args: []string{dir, kind}, Stdin: in}, say, &errs)
	_ = say.Close()
	if err := json.NewDecoder(out).Decode(&l); err != nil {
		t.Fatalf("%v: %v: %s", err, cmd.Wait(), errs.String())
	}
	if want := 3; kind == "spawner" && len(l.Processes) != want+1 {
		t.Errorf("the processes are %v", l.Processes)
	}
	var handles []int
	for _, pid := range l.Processes {
		fd, err := unix.PidfdOpen(pid, 0)
		must(t, err)
		defer func() { _ = unix.Close(fd) }()
		handles = append(handles, fd)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for _, fd := range handles {
		if !wait {
			break
		}
		ends(t, "all processes are gone", func() bool {
			n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			return n > 0
		})
	}
	return l
}

func TestSpawnerKilled(t *testing.T) {
	p := provider(t, config(t.TempDir()))
	older := create(t, p)
	spare, err := p.Prepare(t.Context(), cove.Mold{Template: local.Base, Workspace: cove.WorkspaceMemory})
	must(t, err)
	first := spawner(os.Getpid())
	must(t, unix.Kill(first, unix.SIGKILL))
	says(t, create(t, p))
	says(t, older)
	if second := spawner(os.Getpid()); second == 0 || second == first {
		t.Errorf("the spawner is %d, after %d", second, first)
	}
	// What a spawner made in a namespace of its own, no other one can change.
	if trier, ok := cove.As[cove.Trier](older); ok {
		trial, err := trier.Try(t.Context())
		if os.Getuid() == 0 {
			must(t, err)
			must(t, trial.Discard(t.Context()))
		} else {
			wants(t, cove.Unavailable, err, "a trial in what another spawner made")
		}
		says(t, older)
	}
	box, err := spare.Claim(t.Context(), cove.NewID(), cove.Spec{})
	if os.Getuid() == 0 {
		must(t, err)
		says(t, box)
	} else {
		wants(t, cove.Unavailable, err, "claim")
	}
}

func TestSpawnerKilledWhileMaking(t *testing.T) {
	p := provider(t, config(t.TempDir()))
	create(t, p)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for range 3 {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				if pid := spawner(os.Getpid()); pid != 0 {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			}
		}
	}()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 6 {
				s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{})
				if err != nil { // it was killed twice
					wants(t, cove.Unavailable, err, "create")
					continue
				}
				says(t, s)
				if err := s.Destroy(t.Context()); err != nil {
					t.Errorf("destroy: %v", err)
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	<-done
	says(t, create(t, p))
	if got := ids(t, p); len(got) != 2 {
		t.Errorf("listed are %v", got)
	}
}

func TestAgentKilled(t *testing.T) {
	p := provider(t, config(t.TempDir()))
	s := create(t, p)
	program, err := s.Start(t.Context(), cove.Command{Argv: []string{"sleep", "1000"}})
	must(t, err)
	must(t, unix.Kill(local.PID(s), unix.SIGKILL))
	_, err = program.Wait(t.Context())
	wants(t, cove.Unavailable, err, "wait")
	m, _ := cove.As[cove.Mortal](s)
	<-m.Died()
	_, err = s.Start(t.Context(), cove.Command{Argv: []string{"true"}})
	wants(t, cove.Unavailable, err, "start")
	_, err = s.Files().Stat(t.Context(), ".")
	wants(t, cove.Unavailable, err, "stat")
	_, err = s.Usage(t.Context())
	wants(t, cove.Unavailable, err, "usage")
	must(t, s.Destroy(t.Context()))
	must(t, s.Destroy(t.Context()))
	if got := ids(t, p); len(got) != 0 {
		t.Errorf("listed are %v", got)
	}
	second := create(t, p)
	says(t, second)
	must(t, second.Destroy(t.Context()))
	m, _ = cove.As[cove.Mortal](second)
	select {
	case <-m.Died():
		t.Error("what was destroyed is said to have died")
	default:
	}
}

// TestCloseWhileMaking: what is being made when the provider closes is gone
// when it has.
func TestCloseWhileMaking(t *testing.T) {
	for _, once := range []bool{false, true} {
		t.Run(strconv.FormatBool(once), func(t *testing.T) {
			cfg := config(t.TempDir())
			cfg.Once = once
			p := provider(t, cfg)
			var wg sync.WaitGroup
			made := make(chan struct{}, 100)
			for i := range 6 {
				wg.Go(func() {
					for range 10 {
						err := makeSomething(t, p, i%2 == 0)
						made <- struct{}{}
						if err != nil {
							wants(t, cove.Unavailable, err, "making")
							return
						}
					}
				})
			}
			<-made
			must(t, p.Close())
			wg.Wait()
		})
	}
}

func makeSomething(t *testing.T, p *local.Provider, spare bool) error {
	if !spare {
		_, err := p.Create(t.Context(), cove.NewID(), cove.Spec{})
		return err
	}
	s, err := p.Prepare(t.Context(), cove.Mold{Template: local.Base, Workspace: cove.WorkspaceMemory})
	if err != nil {
		return err
	}
	for range p.List(t.Context()) { // spares are nobody's yet, and not listed
	}
	_, err = s.Claim(t.Context(), cove.NewID(), cove.Spec{})
	return err
}

func TestClosed(t *testing.T) {
	p := provider(t, config(t.TempDir()))
	mold := cove.Mold{Template: local.Base, Workspace: cove.WorkspaceMemory}
	spare, err := p.Prepare(t.Context(), mold)
	must(t, err)
	must(t, p.Close())
	must(t, p.Close())
	_, err = p.Probe(t.Context())
	wants(t, cove.Unavailable, err, "probe")
	_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{})
	wants(t, cove.Unavailable, err, "create")
	_, err = p.Attach(t.Context(), cove.NewID())
	wants(t, cove.Unavailable, err, "attach")
	_, err = p.Prepare(t.Context(), mold)
	wants(t, cove.Unavailable, err, "prepare")
	_, err = spare.Claim(t.Context(), cove.NewID(), cove.Spec{})
	wants(t, cove.Unavailable, err, "claim")
	must(t, spare.Discard(t.Context()))
	wants(t, cove.Unavailable, p.Remove(t.Context(), cove.NewID()), "remove")
	for _, err := range p.List(t.Context()) {
		wants(t, cove.Unavailable, err, "list")
	}
}
