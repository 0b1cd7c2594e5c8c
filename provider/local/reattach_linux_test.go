package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/local"
)

// TestReattachUser is all about layers after a restart, as an ordinary user, who
// can pause nothing where there are no control groups for him.
func TestReattachUser(t *testing.T) {
	tier.Full(t, "the same tests run as root")
	linuxtest.Again(t, "^(TestLayersBeyondAKill|TestStepCutShort|TestTrialsOfOneNote|TestSnapshotCutShort|TestSnapshotUnwritable)$")
}

var boxSpec = cove.Spec{Workspace: cove.Workspace{Kind: cove.WorkspaceMemory, Size: 8 * cove.MiB, Files: 20}}

// line runs a line of shell, for processes that are no test.
func line(ctx context.Context, s cove.Sandbox, text string) error {
	p, err := s.Start(ctx, cove.Command{Argv: []string{"sh", "-ec", text}})
	if err != nil {
		return err
	}
	r, err := p.Wait(ctx)
	if err == nil && r.ExitCode != 0 {
		err = errors.New(text)
	}
	return err
}

// boxed opens a provider with a keeper and makes a sandbox with some files, for
// processes that are no test.
func boxed(ctx context.Context, dir, id, text string) (*local.Provider, cove.Sandbox, error) {
	p, err := local.New(keeping(dir))
	if err != nil {
		return nil, nil, err
	}
	s, err := p.Create(ctx, cove.ID(id), boxSpec)
	if err != nil {
		return nil, nil, err
	}
	return p, s, line(ctx, s, text)
}

// stacked makes sandboxes with layers, and waits to be killed: one that was saved
// and doubled, its double with a trial, and another with one.
func stacked(args []string) error {
	ctx := context.Background()
	p, base, err := boxed(ctx, args[0], args[1], "mkdir d; echo one > d/one; echo two > two")
	if err != nil {
		return err
	}
	saver, ok := cove.As[cove.Snapshotter](base)
	if !ok {
		return errors.New("there are no layers")
	}
	if _, err := saver.Snapshot(ctx, cove.ID(args[4])); err != nil {
		return err
	}
	if err := line(ctx, base, "echo three > three"); err != nil {
		return err
	}
	forker, _ := cove.As[cove.Forker](base)
	double, err := forker.Fork(ctx, cove.ID(args[2]), boxSpec)
	if err != nil {
		return err
	}
	other, err := p.Create(ctx, cove.ID(args[3]), boxSpec)
	if err != nil {
		return err
	}
	for _, s := range []cove.Sandbox{double, other} {
		if err := line(ctx, s, "echo own > own"); err != nil {
			return err
		}
		trier, _ := cove.As[cove.Trier](s)
		if _, err := trier.Try(ctx); err != nil {
			return err
		}
		if err := line(ctx, s, "rm own; echo new > new; [ ! -e two ] || rm two"); err != nil {
			return err
		}
	}
	return waitForEnd()
}

// waitForEnd says that all is ready, and waits to be killed.
func waitForEnd() error {
	if err := json.NewEncoder(os.Stdout).Encode(found{}); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func attach(t *testing.T, p *local.Provider, id cove.ID) cove.Sandbox {
	t.Helper()
	s, err := p.Attach(t.Context(), id)
	must(t, err)
	return s
}

func onTrial(t *testing.T, s cove.Sandbox) cove.Trial {
	t.Helper()
	k, ok := cove.As[cove.TrialKeeper](s)
	if !ok {
		t.Fatal("the sandbox is no TrialKeeper")
	}
	trial, err := k.Tried(t.Context())
	must(t, err)
	return trial
}

// exact demands that a sandbox with so many files takes as many more as it may,
// and no byte more than it may.
func exact(t *testing.T, s cove.Sandbox, has int64) {
	t.Helper()
	u, err := s.Usage(t.Context())
	must(t, err)
	if u.Files != has {
		t.Errorf("there are %d files, and not %d", u.Files, has)
	}
	got := run(t, s, "i=0; while touch many$i; do i=$((i+1)); [ $i -lt 100 ] || exit; done 2>/dev/null; ls many* | wc -l; rm -f many*; head -c 100000000 /dev/zero > big 2>/dev/null; stat -c %s big; rm big")
	files, size, _ := strings.Cut(strings.TrimSpace(got), "\n")
	var n, bytes int64
	_, _ = json.Unmarshal([]byte(files), &n), json.Unmarshal([]byte(size), &bytes)
	if n <= 0 || n > boxSpec.Workspace.Files || bytes <= 0 || bytes > int64(boxSpec.Workspace.Size) {
		t.Errorf("there was room for %q", got)
	}
}

func layersKept(t *testing.T, cfg local.Config) *local.Provider {
	t.Helper()
	p := provider(t, cfg)
	if !local.Layers(p) {
		linuxtest.Need(t, local.Stacking())
	}
	return p
}

func TestLayersBeyondAKill(t *testing.T) {
	dir := t.TempDir()
	linuxtest.Need(t, local.Stacking())
	base, double, other, saved := cove.NewID(), cove.NewID(), cove.NewID(), cove.NewID()
	killed(t, "stacked", dir, string(base), string(double), string(other), string(saved))
	p := layersKept(t, keeping(dir))

	s := attach(t, p, double)
	trial := onTrial(t, s)
	if diff := cmp.Diff([]string{"created new", "removed own", "removed two"}, changed(t, trial)); diff != "" {
		t.Errorf("on trial (-want +got):\n%s", diff)
	}
	saver, _ := cove.As[cove.Snapshotter](s)
	_, err := saver.Snapshot(t.Context(), cove.NewID())
	wants(t, cove.Conflict, err, "a snapshot while there is a trial")
	must(t, trial.Commit(t.Context()))
	if got := sh(t, s, "find . -type f | sort | xargs tail -n 1"); !strings.Contains(got, "new") || strings.Contains(got, "own") || strings.Contains(got, "two") || !strings.Contains(got, "three") {
		t.Errorf("the double has %s", got)
	}
	exact(t, s, 7) // with the four of the first, and what says that two files are gone

	o := attach(t, p, other)
	must(t, onTrial(t, o).Discard(t.Context()))
	if got := sh(t, o, "ls; cat own"); got != "own\nown\n" {
		t.Errorf("the other has %s", got)
	}
	exact(t, o, 1)

	b := attach(t, p, base)
	k, _ := cove.As[cove.TrialKeeper](b)
	_, err = k.Tried(t.Context())
	wants(t, cove.NotFound, err, "a trial of the first")
	if got := sh(t, b, "cat d/one two three"); got != "one\ntwo\nthree\n" {
		t.Errorf("the first has %s", got)
	}
	deeper(t, b)
	for _, id := range []cove.ID{double, other} {
		must(t, p.Remove(t.Context(), id))
	}
	spec := boxSpec
	spec.Snapshot = saved
	again, err := p.Create(t.Context(), cove.NewID(), spec)
	must(t, err)
	if got := sh(t, again, "cat d/one two; ls"); got != "one\ntwo\nd\ntwo\n" {
		t.Errorf("the snapshot has %s", got)
	}
	must(t, again.Destroy(t.Context()))
	must(t, b.Destroy(t.Context()))
	over(t, p, dir)
}

// save makes a snapshot that goes with the directory of the provider.
func save(t *testing.T, s cove.Sandbox) cove.ID {
	t.Helper()
	saver, _ := cove.As[cove.Snapshotter](s)
	name := cove.NewID()
	_, err := saver.Snapshot(t.Context(), name)
	must(t, err)
	return name
}

// over closes a provider without sandboxes, and waits for the end of its keeper.
func over(t *testing.T, p *local.Provider, dir string) {
	t.Helper()
	pid := keeperPID(dir)
	must(t, p.Close())
	ends(t, "the keeper ends, which has nothing to keep", func() bool {
		_, err := os.Stat("/proc/" + strconv.Itoa(pid))
		return pid == 0 || err != nil
	})
}

// deeper takes all steps once more, in a sandbox that was taken up again, and
// takes the results up another time.
func deeper(t *testing.T, s cove.Sandbox) {
	t.Helper()
	sh(t, s, "echo four > four")
	save(t, s)
	forker, _ := cove.As[cove.Forker](s)
	f, err := forker.Fork(t.Context(), cove.NewID(), boxSpec)
	must(t, err)
	sh(t, f, "echo five > five; cat d/one four")
	trial := try(t, s)
	sh(t, s, "rm two")
	must(t, trial.Discard(t.Context()))
	trial = try(t, f)
	sh(t, f, "rm two")
	must(t, trial.Commit(t.Context()))
	if got := sh(t, f, "ls; cat five"); got != "d\nfive\nfour\nthree\nfive\n" {
		t.Errorf("the fork has %s", got)
	}
	must(t, f.Destroy(t.Context()))
}

// TestStepCutShort is about processes that are killed in the middle of a change
// to layers: what is there afterwards is what was there before, or after.
func TestStepCutShort(t *testing.T) {
	linuxtest.Need(t, local.Stacking())
	for _, below := range []string{"nothing", "a layer"} {
		for _, how := range []string{"cover", "try", "commit", "discard"} {
			for _, at := range []string{"before", "bare", "after"} {
				t.Run(below+" "+how+" "+at, func(t *testing.T) { cutShort(t, below == "a layer", how, at) })
				if how == "commit" {
					t.Run(below+" promised "+how+" "+at, func(t *testing.T) { cutShort(t, below == "a layer", how, "promised "+at) })
				}
			}
		}
	}
}

func cutShort(t *testing.T, below bool, how, at string) {
	t.Helper()
	cfg := keeping(t.TempDir())
	p := layersKept(t, cfg)
	s, err := p.Create(t.Context(), cove.NewID(), boxSpec)
	must(t, err)
	sh(t, s, "echo one > one; echo two > two; mkdir d; echo in > d/in")
	if below {
		save(t, s)
		sh(t, s, "echo more > d/more")
	}
	want := sh(t, s, "find | sort")
	changed := want
	ends := how == "commit" || how == "discard"
	if ends {
		try(t, s)
		sh(t, s, "rm one; echo new > d/new")
		changed = sh(t, s, "find | sort")
	}
	before, err := s.Usage(t.Context())
	must(t, err)
	bare, err := local.Interrupt(t.Context(), s, how, at)
	must(t, err)
	at = strings.TrimPrefix(at, "promised ")
	if at == "bare" && !bare && (!ends || below) {
		t.Fatal("the workspace is there")
	}
	must(t, p.Close())
	p = layersKept(t, cfg)
	s = attach(t, p, s.ID())
	open := how == "try" && at == "after" || at == "before" && ends || bare && how == "discard"
	if open || how == "commit" {
		want = changed
	}
	if got := sh(t, s, "find | sort"); got != want {
		t.Errorf("there is %s, and not %s", got, want)
	}
	settled(t, s, open, before, ends)
	must(t, s.Destroy(t.Context()))
	over(t, p, cfg.Dir)
}

// TestTrialsOfOneNote is about trials that are not written down one by one.
func TestTrialsOfOneNote(t *testing.T) {
	linuxtest.Need(t, local.Stacking())
	cfg := keeping(t.TempDir())
	p := layersKept(t, cfg)
	s, err := p.Create(t.Context(), cove.NewID(), boxSpec)
	must(t, err)
	again := func() {
		must(t, p.Close())
		p = layersKept(t, cfg)
		s = attach(t, p, s.ID())
	}
	sh(t, s, "echo old > f")
	for range 3 {
		trial := try(t, s)
		sh(t, s, "echo new > f")
		must(t, trial.Discard(t.Context()))
	}
	again()
	settled(t, s, false, cove.Usage{}, true)
	for range 3 {
		must(t, try(t, s).Discard(t.Context()))
		trial := try(t, s)
		sh(t, s, "echo more >> g")
		must(t, trial.Commit(t.Context()))
	}
	again()
	if got := sh(t, s, "cat g"); got != "more\nmore\nmore\n" {
		t.Errorf("what was committed is %s", got)
	}
	settled(t, s, false, cove.Usage{}, true)
	try(t, s)
	sh(t, s, "echo new > f")
	again()
	if got := changed(t, onTrial(t, s)); !slices.Equal(got, []string{"modified f"}) {
		t.Errorf("changed are %q", got)
	}
	must(t, onTrial(t, s).Discard(t.Context()))
	again()
	if got := sh(t, s, "cat f"); got != "old\n" {
		t.Errorf("after the last trial there is %s", got)
	}
	settled(t, s, false, cove.Usage{}, true)
	must(t, s.Destroy(t.Context()))
	over(t, p, cfg.Dir)
}

// settled looks at the trial, the limits and the store of a sandbox, and takes
// more steps with it.
func settled(t *testing.T, s cove.Sandbox, open bool, before cove.Usage, ended bool) {
	t.Helper()
	after, err := s.Usage(t.Context())
	must(t, err)
	if !ended && after.Files != before.Files {
		t.Errorf("there are %d files, and were %d", after.Files, before.Files)
	}
	names, extra := local.Layered(s)
	work := int64(0)
	for _, n := range names {
		if strings.HasSuffix(n, ".work") {
			work++
		}
	}
	if extra != int64(len(names))+work {
		slices.Sort(names)
		t.Errorf("of %q %d are noted", names, extra)
	}
	if open {
		onTrial(t, s)
		must(t, onTrial(t, s).Commit(t.Context()))
	} else {
		k, _ := cove.As[cove.TrialKeeper](s)
		_, err := k.Tried(t.Context())
		wants(t, cove.NotFound, err, "a trial")
	}
	exact(t, s, after.Files-whiteouts(t, s, after.Files))
	trial := try(t, s)
	sh(t, s, "echo x > x")
	must(t, trial.Discard(t.Context()))
}

// whiteouts is how many fewer files there are after a commit.
func whiteouts(t *testing.T, s cove.Sandbox, had int64) int64 {
	t.Helper()
	u, err := s.Usage(t.Context())
	must(t, err)
	return had - u.Files
}

// TestLayersAndDisk is about what begins with files and is on disk, which cannot
// be.
func TestLayersAndDisk(t *testing.T) {
	p := layeredProvider(t)
	s := create(t, p)
	spec := cove.Spec{Workspace: cove.Workspace{Kind: cove.WorkspaceDisk, Size: 32 * cove.MiB}}
	forker, _ := cove.As[cove.Forker](s)
	_, err := forker.Fork(t.Context(), cove.NewID(), spec)
	wants(t, cove.Unsupported, err, "a fork on disk")
	spec.Snapshot = shoot(t, p, s)
	_, err = p.Create(t.Context(), cove.NewID(), spec)
	wants(t, cove.Unsupported, err, "a snapshot on disk")
	must(t, s.Destroy(t.Context()))
}

// pausedBox makes a sandbox, pauses it and waits to be killed.
func pausedBox(args []string) error {
	ctx := context.Background()
	p, err := local.New(keeping(args[0]))
	if err != nil {
		return err
	}
	s, err := p.Create(ctx, cove.ID(args[1]), boxSpec)
	if err != nil {
		return err
	}
	if _, err := s.Start(ctx, cove.Command{Argv: []string{"sh", "-c", counts}, Keep: "counts"}); err != nil {
		return err
	}
	if pauser, ok := cove.As[cove.Pauser](s); ok {
		if err := pauser.Pause(ctx); err != nil {
			return err
		}
	}
	return waitForEnd()
}

func TestPausedBeyondAKill(t *testing.T) {
	dir := t.TempDir()
	id := cove.NewID()
	killed(t, "paused", dir, string(id))
	p := provider(t, keeping(dir))
	s := attach(t, p, id)
	pause := pauser(t, s)
	must(t, pause.Pause(t.Context()))
	must(t, pause.Resume(t.Context()))
	c := resume(t, s, "counts", nil)
	run(t, s, "touch stop")
	if r, err := c.Wait(t.Context()); err != nil || r.ExitCode != 3 {
		t.Errorf("it ended as %+v, %v", r, err)
	}
	must(t, s.Destroy(t.Context()))
}
