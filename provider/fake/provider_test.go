package fake_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/fake"
)

func wants(t *testing.T, code cove.Code, err error) {
	t.Helper()
	if cove.CodeOf(err) != code {
		t.Errorf("got %v; want an error with code %s", err, code)
	}
}

func ids(t *testing.T, p cove.Provider) []cove.ID {
	t.Helper()
	var list []cove.ID
	for id, err := range p.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, id)
	}
	return list
}

func TestNewRefusesBadDirectories(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := fake.New(fake.Config{})
	wants(t, cove.Invalid, err)
	_, err = fake.New(fake.Config{Dir: file})
	wants(t, cove.Unavailable, err)
	_, err = fake.New(fake.Config{Dir: filepath.Join(file, "below")})
	wants(t, cove.Unavailable, err)
}

func TestUnready(t *testing.T) {
	p := open(t, fake.Config{Name: "other", Unready: "the moon is full"})
	caps, err := p.Probe(t.Context())
	if err != nil || caps.Ready || caps.Why != "the moon is full" || caps.Remedy == "" || p.Name() != "other" {
		t.Errorf("probe gives %+v, %v", caps, err)
	}
	_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{})
	wants(t, cove.Unavailable, err)
	prep, _ := cove.As[cove.Preparer](p)
	_, err = prep.Prepare(t.Context(), cove.Mold{Template: "base", Workspace: cove.WorkspaceMemory})
	wants(t, cove.Unavailable, err)
}

// The programs of a daemon that was killed are gone; the sandbox is there.
func TestSandboxSurvivesTheProcess(t *testing.T) {
	dir := t.TempDir()
	first := open(t, fake.Config{Dir: dir})
	s, err := first.Create(t.Context(), cove.NewID(), cove.Spec{Env: map[string]string{"A": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, s, "kept", "kept")
	if _, err := s.Start(t.Context(), cove.Command{Argv: []string{"sleep", "1000"}}); err != nil {
		t.Fatal(err)
	}
	second := open(t, fake.Config{Dir: dir})
	again, err := second.Attach(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if r := sh(t, again, "cat kept; echo $A"); r.stdout != "kept1\n" {
		t.Errorf("the attached sandbox gives %q", r.stdout)
	}
	if u, err := again.Usage(t.Context()); err != nil || u.PIDs != 0 || u.Files != 1 || u.Disk != 4 {
		t.Errorf("usage is %+v, %v", u, err)
	}
}

func TestHalfMadeSandboxes(t *testing.T) {
	dir := t.TempDir()
	p := open(t, fake.Config{Dir: dir})
	var half []cove.ID
	for _, content := range map[string]string{"nothing": "", "a tree": "tree", "half a marker": "spec.json"} {
		id := cove.NewID()
		half = append(half, id)
		if err := os.MkdirAll(filepath.Join(dir, string(id)), 0o700); err != nil {
			t.Fatal(err)
		}
		if content == "tree" {
			err := os.Mkdir(filepath.Join(dir, string(id), content), 0o700)
			if err != nil {
				t.Fatal(err)
			}
		} else if content != "" {
			err := os.WriteFile(filepath.Join(dir, string(id), content), []byte(`{"env":{"A`), 0o600)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "not-an-id"), 0o700); err != nil {
		t.Fatal(err)
	}
	got := ids(t, p)
	slices.Sort(half)
	if !slices.Equal(got, half) {
		t.Errorf("List gives %v; want the half-made ones %v", got, half)
	}
	for _, id := range half {
		_, err := p.Attach(t.Context(), id)
		wants(t, cove.NotFound, err)
		_, err = p.Create(t.Context(), id, cove.Spec{})
		wants(t, cove.Conflict, err)
		if err := p.Remove(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	if left := ids(t, p); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

func TestHooksFailEveryStep(t *testing.T) {
	broken := cove.Errorf(cove.Unavailable, "the hook says no")
	fail := ""
	var seen []string
	p := open(t, fake.Config{Hook: func(step string, _ cove.ID) error {
		seen = append(seen, step)
		if step == fail {
			return broken
		}
		return nil
	}})
	ctx := t.Context()
	s, err := p.Create(ctx, cove.NewID(), cove.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	prep, _ := cove.As[cove.Preparer](p)
	mold := cove.Mold{Template: "base", Workspace: cove.WorkspaceMemory}
	keeper, _ := cove.As[cove.SnapshotKeeper](p)
	pauser, _ := cove.As[cove.Pauser](s)
	snap, _ := cove.As[cove.Snapshotter](s)
	forker, _ := cove.As[cove.Forker](s)
	dialer, _ := cove.As[cove.Dialer](s)
	create := func() error { _, err := p.Create(ctx, cove.NewID(), cove.Spec{}); return err }
	for _, tc := range []struct {
		step string
		call func() error
	}{
		{"probe", func() error { _, err := p.Probe(ctx); return err }},
		{"list", func() error {
			for _, err := range p.List(ctx) {
				return err
			}
			return nil
		}},
		{"attach", func() error { _, err := p.Attach(ctx, s.ID()); return err }},
		{"create.begin", create},
		{"create.made", create},
		{"prepare", func() error { _, err := prep.Prepare(ctx, mold); return err }},
		{"claim", func() error {
			spare, err := prep.Prepare(ctx, mold)
			if err != nil {
				return err
			}
			_, err = spare.Claim(ctx, cove.NewID(), cove.Spec{})
			return err
		}},
		{"start", func() error { _, err := s.Start(ctx, cove.Command{Argv: []string{"true"}}); return err }},
		{"file", func() error { _, err := s.Files().Stat(ctx, "."); return err }},
		{"usage", func() error { _, err := s.Usage(ctx); return err }},
		{"pause", func() error { return pauser.Pause(ctx) }},
		{"resume", func() error { return pauser.Resume(ctx) }},
		{"snapshot", func() error { _, err := snap.Snapshot(ctx, cove.NewID()); return err }},
		{"snapshot", func() error { return keeper.RemoveSnapshot(ctx, cove.NewID()) }},
		{"fork", func() error { _, err := forker.Fork(ctx, cove.NewID(), cove.Spec{}); return err }},
		{"dial", func() error { _, err := dialer.Dial(ctx, 1); return err }},
		{"remove", func() error { return p.Remove(ctx, s.ID()) }},
		{"destroy.begin", func() error { return s.Destroy(ctx) }},
		{"destroy.files", func() error { return s.Destroy(ctx) }},
	} {
		fail = tc.step
		if err := tc.call(); !errors.Is(err, broken) {
			t.Errorf("%s: got %v; want the error of the hook", tc.step, err)
		}
		if !slices.Contains(seen, tc.step) {
			t.Errorf("%s: the hook was not called", tc.step)
		}
		fail = ""
		if left := ids(t, p); !slices.Equal(left, []cove.ID{s.ID()}) {
			t.Fatalf("%s: List gives %v; want only %s", tc.step, left, s.ID())
		}
	}
	// The programs are gone by now; the second try frees the rest.
	_, err = s.Usage(ctx)
	wants(t, cove.NotFound, err)
	if err := s.Destroy(ctx); err != nil {
		t.Error(err)
	}
	if left := ids(t, p); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

func TestHookCanHoldAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		p := open(t, fake.Config{Dir: t.TempDir(), Hook: func(step string, _ cove.ID) error {
			if step == "create.made" {
				<-gate
			}
			return nil
		}})
		id := cove.NewID()
		made := make(chan error, 1)
		go func() {
			_, err := p.Create(t.Context(), id, cove.Spec{})
			made <- err
		}()
		synctest.Wait()
		if got := ids(t, p); !slices.Contains(got, id) {
			t.Errorf("List lacks a sandbox that is half made")
		}
		_, err := p.Attach(t.Context(), id)
		wants(t, cove.NotFound, err)
		close(gate)
		if err := <-made; err != nil {
			t.Error(err)
		}
	})
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, fake.Config{Dir: t.TempDir(), Latency: 3 * time.Second})
		begun := time.Now()
		if _, err := p.Create(t.Context(), cove.NewID(), cove.Spec{}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("Create took %s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := p.Create(ctx, cove.NewID(), cove.Spec{})
		wants(t, cove.Timeout, err)
		prep, _ := cove.As[cove.Preparer](p)
		spare, err := prep.Prepare(t.Context(), cove.Mold{Template: "base", Workspace: cove.WorkspaceDisk})
		if err != nil {
			t.Fatal(err)
		}
		begun = time.Now()
		if _, err := spare.Claim(t.Context(), cove.NewID(), cove.Spec{Workspace: cove.Workspace{Kind: cove.WorkspaceDisk}}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("Claim took %s", took)
		}
		if n := len(ids(t, p)); n != 2 {
			t.Errorf("List gives %d sandboxes; want 2", n)
		}
	})
}

func TestSpares(t *testing.T) {
	dir := t.TempDir()
	p := open(t, fake.Config{Dir: dir})
	prep, _ := cove.As[cove.Preparer](p)
	mold := cove.Mold{Provider: "fake", Template: "base", Workspace: cove.WorkspaceMemory}
	_, err := prep.Prepare(t.Context(), cove.Mold{Template: "base", Workspace: "cloud"})
	wants(t, cove.Invalid, err)
	spare, err := prep.Prepare(t.Context(), mold)
	if err != nil {
		t.Fatal(err)
	}
	_, err = spare.Claim(t.Context(), cove.NewID(), cove.Spec{Template: "python"})
	wants(t, cove.Invalid, err)

	// A spare can start from a snapshot too: it is only in the way then.
	s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	write(t, s, "saved", "saved")
	snap, _ := cove.As[cove.Snapshotter](s)
	name := cove.NewID()
	if _, err := snap.Snapshot(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	spare, err = prep.Prepare(t.Context(), mold)
	if err != nil {
		t.Fatal(err)
	}
	from, err := spare.Claim(t.Context(), cove.NewID(), cove.Spec{Snapshot: name})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := read(t.Context(), from, "saved"); text != "saved" {
		t.Errorf("the claimed sandbox has %q, %v", text, err)
	}
	// A snapshot that does not fit its new workspace is refused.
	write(t, s, "big", strings.Repeat("x", 100<<10))
	name = cove.NewID()
	if _, err := snap.Snapshot(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{Snapshot: name, Workspace: cove.Workspace{Size: 64 * cove.KiB}})
	wants(t, cove.Exhausted, err)

	// One whose process died shows up, so that somebody removes it.
	if _, err := prep.Prepare(t.Context(), mold); err != nil {
		t.Fatal(err)
	}
	other := open(t, fake.Config{Dir: dir})
	if n := len(ids(t, other)); n != 3 {
		t.Errorf("another process sees %d; want two sandboxes and a spare", n)
	}
	if n := len(ids(t, p)); n != 2 {
		t.Errorf("the provider itself sees %d; want two sandboxes", n)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(ids(t, other)); n != 2 {
		t.Errorf("after Close there are %d; want two sandboxes", n)
	}
}

func TestClosed(t *testing.T) {
	p := open(t, fake.Config{})
	s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	prep, _ := cove.As[cove.Preparer](p)
	spare, err := prep.Prepare(t.Context(), cove.Mold{Template: "base", Workspace: cove.WorkspaceMemory})
	if err != nil {
		t.Fatal(err)
	}
	run, err := s.Start(t.Context(), cove.Command{Argv: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := run.Wait(t.Context()); err != nil || r.Outcome != cove.Killed {
		t.Errorf("a program of a closed provider gives %+v, %v", r, err)
	}
	_, err = p.Probe(t.Context())
	wants(t, cove.Unavailable, err)
	_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{})
	wants(t, cove.Unavailable, err)
	_, err = s.Start(t.Context(), cove.Command{Argv: []string{"true"}})
	wants(t, cove.NotFound, err)
	wants(t, cove.Unavailable, s.Destroy(t.Context()))
	_, err = spare.Claim(t.Context(), cove.NewID(), cove.Spec{})
	wants(t, cove.Unavailable, err)
}

func TestPowersCanBeTakenAway(t *testing.T) {
	for _, only := range cove.Powers() {
		p := open(t, fake.Config{Powers: []cove.Power{only}})
		s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		has := map[cove.Power]bool{}
		_, has[cove.PowerPause] = cove.As[cove.Pauser](s)
		_, has[cove.PowerSnapshot] = cove.As[cove.SnapshotKeeper](p)
		_, has[cove.PowerFork] = cove.As[cove.Forker](s)
		_, has[cove.PowerDial] = cove.As[cove.Dialer](s)
		_, has[cove.PowerPrepare] = cove.As[cove.Preparer](p)
		for power, there := range has {
			if there != (power == only) {
				t.Errorf("with %s alone, %s is %v", only, power, there)
			}
		}
	}
}

func TestIsolationCanBePretended(t *testing.T) {
	iso := cove.Isolation{Boundary: cove.BoundaryMicroVM, Memory: cove.Soft, PIDs: cove.Absent, Disk: cove.Soft, Files: cove.Soft}
	p := open(t, fake.Config{Isolation: iso})
	s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{
		Resources: cove.Resources{Memory: 4 * cove.MiB, PIDs: 1},
		Workspace: cove.Workspace{Size: 64 * cove.KiB, Files: 1}, Require: cove.Require{Isolation: cove.BoundaryMicroVM},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.Isolation() != iso {
		t.Errorf("isolation is %+v", s.Isolation())
	}
	if r := sh(t, s, "hog 8m; echo a | cat; dd if=/dev/zero of=f bs=1k count=100 2>/dev/null; touch g h; ls"); r.stdout != "a\nf\ng\nh\n" {
		t.Errorf("limits that are not enforced stopped it: %q %q", r.stdout, r.stderr)
	}
	_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{Resources: cove.Resources{Memory: cove.GiB}, Floors: []cove.Limit{cove.LimitMemory}})
	wants(t, cove.Unsupported, err)
}
