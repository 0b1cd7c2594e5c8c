package engine_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

// scene is what an operation of the walk is done to.
type scene struct {
	p     cove.Platform
	id    cove.ID // of a session with the file precious
	saved cove.ID // of a snapshot, where the operation wants one
	cut   string  // the step at which the world stopped, or ""
}

// operation is something that a server may be killed in the middle of.
type operation struct {
	name    string
	prepare func(ctx context.Context, s *scene) error // what is there before
	do      func(ctx context.Context, s *scene) error
	ends    bool // the session may be gone afterwards
}

func prepared(steps ...func(ctx context.Context, s *scene) error) func(ctx context.Context, s *scene) error {
	return func(ctx context.Context, s *scene) error {
		made, err := s.p.Sessions().Open(ctx, cove.OpenRequest{Spec: cove.Spec{User: "u", Thread: "t"}})
		if err != nil {
			return err
		}
		s.id = made.ID
		if err := s.p.Files(s.id).Write(ctx, "precious", strings.NewReader("text"), 0o644); err != nil {
			return err
		}
		for _, step := range steps {
			if err := step(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}
}

func stop(ctx context.Context, s *scene) error {
	_, err := s.p.Sessions().Stop(ctx, s.id)
	return err
}

func start(ctx context.Context, s *scene) error {
	_, err := s.p.Sessions().Start(ctx, s.id)
	return err
}

func save(ctx context.Context, s *scene) error {
	snap, err := s.p.Snapshots().Snapshot(ctx, s.id, cove.SnapshotRequest{})
	if err == nil {
		s.saved = snap.ID
	}
	return err
}

func closeKeeping(keep bool) func(ctx context.Context, s *scene) error {
	return func(ctx context.Context, s *scene) error {
		_, err := s.p.Sessions().Close(ctx, s.id, keep)
		return err
	}
}

func begin(ctx context.Context, s *scene) error {
	_, err := s.p.Processes(s.id).Start(ctx, cove.ExecRequest{Line: "echo ready; cat", KeepStdin: true})
	return err
}

func pause(ctx context.Context, s *scene) error {
	_, err := s.p.Snapshots().Pause(ctx, s.id)
	return err
}

func opening(req cove.OpenRequest) func(ctx context.Context, s *scene) error {
	return func(ctx context.Context, s *scene) error {
		req.Spec.Snapshot = s.saved
		_, err := s.p.Sessions().Open(ctx, req)
		return err
	}
}

func operations() []operation {
	return []operation{
		{"create", prepared(), opening(cove.OpenRequest{Spec: cove.Spec{User: "v"}}), false},
		{"create with a key", prepared(), opening(cove.OpenRequest{IdempotencyKey: "k"}), false},
		{"create from a snapshot", prepared(save), opening(cove.OpenRequest{}), false},
		{"stop", prepared(), stop, false},
		{"stop with programs", prepared(begin, begin), stop, false},
		{"start", prepared(stop), start, false},
		{"stop again", prepared(stop, start), stop, false},
		{"snapshot", prepared(), save, false},
		{"delete a snapshot", prepared(save), func(ctx context.Context, s *scene) error { return s.p.Snapshots().Delete(ctx, s.saved) }, false},
		{"fork", prepared(begin), func(ctx context.Context, s *scene) error {
			_, err := s.p.Snapshots().Fork(ctx, s.id, cove.ForkRequest{User: "w"})
			return err
		}, false},
		{"make a volume", prepared(), makeVolume, false},
		{"delete a volume", prepared(makeVolume), func(ctx context.Context, s *scene) error { return s.p.Volumes().Delete(ctx, "data") }, false},
		{"create with a volume", prepared(makeVolume), opening(cove.OpenRequest{Spec: cove.Spec{Volumes: data(true).Volumes}}), false},
		{"pause", prepared(begin), pause, false},
		{"resume", prepared(begin, pause), func(ctx context.Context, s *scene) error {
			_, err := s.p.Snapshots().Resume(ctx, s.id)
			return err
		}, false},
		{"background", prepared(begin), begin, false},
		{"destroy", prepared(begin), closeKeeping(false), true},
		{"destroy and keep", prepared(), closeKeeping(true), true},
		{"destroy a stopped one", prepared(stop), closeKeeping(false), true},
	}
}

// TestWalk stops the world at every step of every operation, starts a server on
// what is left, and demands that all of it agrees and no file is lost.
func TestWalk(t *testing.T) {
	for _, op := range operations() {
		t.Run(op.name, func(t *testing.T) {
			steps := 0
			for at := 1; walk(t, op, at); at++ {
				steps = at
			}
			if steps < 3 {
				t.Errorf("the operation has %d steps: they are not seen", steps)
			}
		})
	}
}

// TestWalkRecovery stops the world in the middle of every operation, and once
// more at every step of the start that comes after it.
func TestWalkRecovery(t *testing.T) {
	for _, op := range operations() {
		t.Run(op.name, func(t *testing.T) {
			for again := 1; ; again++ {
				w := newWorld(t)
				sc, release := interrupt(t, w, op, 4)
				more := stopStart(t, w, again)
				t.Run(strconv.Itoa(again), func(t *testing.T) { afterACrash(t, w, op, sc, true) })
				release()
				if !more {
					return
				}
			}
		})
	}
}

// stopStart opens a server and stops it at a step of that.
func stopStart(t *testing.T, w *world, at int) (more bool) {
	t.Helper()
	s := newStopper(at)
	w.fake.Hook = s.hook
	s.arm()
	over := make(chan *engine.Engine, 1)
	go func() {
		e, _ := w.tryOpen(s.watch) // an error is what it ends with when it is stopped
		over <- e
	}()
	select {
	case <-s.stopped:
		more = true
	case e := <-over:
		over <- e
	}
	old := w.provider
	t.Cleanup(func() {
		s.release()
		if e := <-over; e != nil {
			_ = e.Close(context.WithoutCancel(t.Context()))
		}
		_ = old.Close()
	})
	return more
}

// interrupt prepares a world and stops it at a step of an operation, if it has
// that many.
func interrupt(t *testing.T, w *world, op operation, at int) (sc *scene, release func()) {
	t.Helper()
	s := newStopper(at)
	w.fake.Hook = s.hook
	first, err := w.tryOpen(s.watch)
	if err != nil {
		t.Fatal(err)
	}
	old := w.provider
	sc = &scene{p: first.As(boss)}
	if err := op.prepare(t.Context(), sc); err != nil {
		t.Fatal(err)
	}
	s.arm()
	over := make(chan error, 1)
	go func() { over <- op.do(context.WithoutCancel(t.Context()), sc) }()
	select {
	case <-s.stopped:
	case err := <-over:
		over <- err
	}
	sc.cut = s.stoppedAt()
	return sc, func() {
		s.release()
		if err := <-over; err != nil && sc.cut == "" {
			t.Errorf("%s: %v", op.name, err)
		}
		_ = first.Close(context.WithoutCancel(t.Context())) // nothing goes through any more
		_ = old.Close()
	}
}

// walk stops an operation at one step. It reports whether there was such a step.
func walk(t *testing.T, op operation, at int) (more bool) {
	t.Helper()
	w := newWorld(t)
	sc, release := interrupt(t, w, op, at)
	t.Run(fmt.Sprintf("%d %s", at, sc.cut), func(t *testing.T) { afterACrash(t, w, op, sc, sc.cut != "") })
	release()
	return sc.cut != ""
}

// afterACrash opens another server on the world and looks at all of it.
func afterACrash(t *testing.T, w *world, op operation, sc *scene, cut bool) {
	t.Helper()
	w.t = t
	w.fake.Hook = nil
	e, err := w.tryOpen()
	if err != nil {
		t.Fatal(err)
	}
	defer w.shut(e, w.provider)
	a := &aftermath{w.dir, w.store, w.provider, w.journal, e}
	a.agrees(t)
	a.looksRight(t, op, sc.id, cut)
	a.endsClean(t)
}

// looksRight looks at the session that the operation was done to. It has its
// files, wherever they are, or is rightly gone.
func (a *aftermath) looksRight(t *testing.T, op operation, id cove.ID, cut bool) {
	t.Helper()
	s, err := a.engine.As(boss).Sessions().Get(t.Context(), id)
	switch {
	case err == nil && !cut && op.ends:
		t.Errorf("the session was ended, and is there as %s", s.State)
	case err == nil:
		a.hasItsFile(t, s)
	case !op.ends:
		t.Errorf("the session is gone: %v", err)
	default:
		wantCode(t, err, cove.NotFound, cove.ReasonSessionClosed)
	}
}

// aftermath is what a server finds when it is started.
type aftermath struct {
	dir      string
	store    cove.Store
	provider cove.Provider
	journal  cove.Journal
	engine   *engine.Engine
}

// agrees compares the table with the store, the provider, the archives, the
// snapshots, the output and the journal.
func (a *aftermath) agrees(t *testing.T) {
	t.Helper()
	var table, live, archived []string
	for s, err := range a.engine.As(boss).Sessions().List(t.Context(), cove.SessionFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		table = append(table, string(s.ID))
		switch s.State {
		case cove.Running, cove.Paused:
			live = append(live, string(s.ID))
		case cove.Stopped:
			archived = append(archived, string(s.ID))
		case cove.Creating, cove.Failed, cove.Ended:
			t.Errorf("a session is %s", s.State)
		}
		if s.Archived != (s.State == cove.Stopped) {
			t.Errorf("a session that is %s says that archived is %t", s.State, s.Archived)
		}
	}
	same := func(what string, got, want []string) {
		t.Helper()
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(slices.Clip(want), slices.Clip(got), equalEmpty); diff != "" {
			t.Errorf("%s do not agree with the table (-want +got):\n%s", what, diff)
		}
	}
	var records []string
	for s, err := range a.store.Sessions(t.Context(), cove.SessionFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, string(s.ID))
	}
	same("the records", records, table)
	same("the sandboxes", heldBy(t, a.provider), live)
	same("the archives", namesIn(t, filepath.Join(a.dir, "archives"), ".tar"), archived)
	same("the sessions that the journal says go on", slices.Compact(recovered(t, a.journal)), table)
	for _, name := range namesIn(t, filepath.Join(a.dir, "output"), "") {
		if id, _, _ := strings.Cut(name, "-"); !slices.Contains(table, id) {
			t.Errorf("output %s belongs to nobody", name)
		}
	}
	var saved []string
	for s, err := range a.store.Snapshots(t.Context(), cove.SnapshotFilter{}) {
		if err != nil || s.Pending {
			t.Errorf("a snapshot is %+v (%v)", s, err)
		}
		saved = append(saved, string(s.ID))
	}
	same("the snapshots", namesIn(t, filepath.Join(a.dir, "fake", ".snapshots"), ""), saved)
	same("the volumes", namesIn(t, filepath.Join(a.dir, "volumes"), ""), a.volumes(t))
}

var equalEmpty = cmp.Transformer("empty", func(s []string) []string { return append([]string{}, s...) })

// namesIn lists a folder, which may be missing, without a suffix that all have.
func namesIn(t *testing.T, dir, suffix string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok {
			t.Errorf("%s is left in %s", e.Name(), dir)
		}
		names = append(names, name)
	}
	return names
}

// hasItsFile makes a session run and reads what was written into it.
func (a *aftermath) hasItsFile(t *testing.T, s *cove.Session) {
	t.Helper()
	p := a.engine.As(boss)
	var err error
	switch s.State {
	case cove.Stopped:
		_, err = p.Sessions().Start(t.Context(), s.ID)
	case cove.Paused:
		_, err = p.Snapshots().Resume(t.Context(), s.ID)
	case cove.Running, cove.Creating, cove.Failed, cove.Ended:
	}
	if err != nil {
		t.Errorf("a session that is %s cannot be used: %v", s.State, err)
		return
	}
	if got := sh(t, p, s.ID, "cat precious"); got != "text" {
		t.Errorf("the file holds %q", got)
	}
	if s.State == cove.Stopped {
		return
	}
	if _, ok := a.provider.(interface{ Unwrap() cove.Provider }); ok && resumes(t, a.provider) {
		kept, table := keptIn(t, a.provider, s.ID), []string{}
		for _, info := range processes(t, p, s.ID) {
			table = append(table, fmt.Sprintf("p%d", info.PID))
		}
		if diff := cmp.Diff(table, kept, equalEmpty); diff != "" {
			t.Errorf("the programs in the table and those that are kept (-table +kept):\n%s", diff)
		}
	}
}

func resumes(t *testing.T, p cove.Provider) bool {
	t.Helper()
	caps, err := p.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(caps.Powers, cove.PowerResume)
}

// endsClean closes all there is, and nothing may be left.
func (a *aftermath) endsClean(t *testing.T) {
	t.Helper()
	p := a.engine.As(boss)
	var ids []cove.ID
	for s, err := range p.Sessions().List(t.Context(), cove.SessionFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.ID)
	}
	for _, id := range ids {
		if _, err := p.Sessions().Close(t.Context(), id, false); err != nil {
			t.Error(err)
		}
	}
	var saved []cove.ID
	for s, err := range p.Snapshots().List(t.Context(), cove.SnapshotFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		saved = append(saved, s.ID)
	}
	for _, id := range saved {
		if err := p.Snapshots().Delete(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	for _, id := range a.volumes(t) {
		if err := p.Volumes().Delete(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"fake", "archives", "output", "volumes"} {
		err := fs.WalkDir(os.DirFS(filepath.Join(a.dir, name)), ".", func(path string, _ fs.DirEntry, err error) error {
			if err != nil || path != "." && path != ".snapshots" {
				t.Errorf("%s is left in %s (%v)", path, name, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
