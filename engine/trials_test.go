package engine_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/provider/fake"
)

func try(t *testing.T, p cove.Platform, id cove.ID, line string, then cove.TrialEnd) (*cove.TrialResult, error) {
	t.Helper()
	return p.Trials(id).Run(t.Context(), cove.TrialRequest{ExecRequest: cove.ExecRequest{Line: line}, Then: then})
}

func mustTry(t *testing.T, p cove.Platform, id cove.ID, line string, then cove.TrialEnd) *cove.TrialResult {
	t.Helper()
	out, err := try(t, p, id, line, then)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func wantTrial(t *testing.T, p cove.Platform, id cove.ID, want cove.TrialState) {
	t.Helper()
	s, err := p.Sessions().Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if s.Trial != want {
		t.Errorf("the session's trial is %q, want %q", s.Trial, want)
	}
}

// again closes an engine and opens another on the same world.
func (w *world) again(e *engine.Engine, change ...func(*engine.Config)) *engine.Engine {
	w.t.Helper()
	if err := e.Close(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	if err := w.provider.Close(); err != nil {
		w.t.Fatal(err)
	}
	return w.open(change...)
}

// TestLostTrialIsSaid: a layer that is gone after a restart is not taken for a
// commit, and its session says so until somebody has taken note.
func TestLostTrialIsSaid(t *testing.T) {
	w := newWorld(t)
	e := w.open()
	id := mustOpen(t, e.As(boss), cove.Spec{}).ID
	mustTry(t, e.As(boss), id, "echo x > f", cove.ThenKeep)
	if err := os.RemoveAll(filepath.Join(w.fake.Dir, string(id), "below")); err != nil {
		t.Fatal(err)
	}
	p := w.again(e).As(boss)
	wantTrial(t, p, id, cove.TrialLost)
	_, err := p.Trials(id).Get(t.Context())
	wantCode(t, err, cove.NotFound, cove.ReasonTrialLost)
	wantCode(t, p.Trials(id).Commit(t.Context()), cove.NotFound, cove.ReasonTrialLost)
	if _, err := p.Sessions().Stop(t.Context(), id); err != nil {
		t.Errorf("a lost trial holds the session: %v", err)
	}
	if err := p.Trials(id).Discard(t.Context()); err != nil {
		t.Error(err)
	}
	wantTrial(t, p, id, "")
	wantCode(t, p.Trials(id).Discard(t.Context()), cove.NotFound, "")
	noted := 0
	for ev, err := range w.journal.Events(t.Context(), cove.EventFilter{Kind: "trial.lost"}) {
		if err != nil || ev.Session != id || ev.Phase != cove.EngineNote {
			t.Errorf("the journal says %+v, %v", ev, err)
		}
		noted++
	}
	if noted != 1 {
		t.Errorf("the journal tells of the loss %d times", noted)
	}
}

// TestLostTrialMakesRoomForTheNext: whoever runs another one has taken note.
func TestLostTrialMakesRoomForTheNext(t *testing.T) {
	w := newWorld(t)
	e := w.open()
	id := mustOpen(t, e.As(boss), cove.Spec{}).ID
	mustTry(t, e.As(boss), id, "echo x > f", cove.ThenKeep)
	if err := os.RemoveAll(filepath.Join(w.fake.Dir, string(id), "below")); err != nil {
		t.Fatal(err)
	}
	e = w.again(e)
	mustTry(t, e.As(boss), id, "echo y > g", cove.ThenDiscard)
	wantTrial(t, e.As(boss), id, "")
	wantTrial(t, w.again(e).As(boss), id, "")
}

// TestTrialThatNoRecordSpeaksOf: a crash while a program ran on trial leaves a
// layer, which must not become the workspace by being forgotten.
func TestTrialThatNoRecordSpeaksOf(t *testing.T) {
	w := newWorld(t)
	e := w.open()
	id := mustOpen(t, e.As(boss), cove.Spec{}).ID
	sh(t, e.As(boss), id, "echo old > f")
	box, err := w.provider.Attach(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	trier, _ := cove.As[cove.Trier](box)
	if _, err := trier.Try(t.Context()); err != nil {
		t.Fatal(err)
	}
	sh(t, e.As(boss), id, "echo half > f")
	p := w.again(e).As(boss)
	wantTrial(t, p, id, cove.TrialOpen)
	_, err = p.Sessions().Stop(t.Context(), id)
	wantCode(t, err, cove.Conflict, cove.ReasonTrialOpen)
	if err := p.Trials(id).Discard(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, p, id, "cat f"); got != "old\n" {
		t.Errorf("the file holds %q", got)
	}
}

// plainBoxes gives sandboxes back without their powers.
type plainBoxes struct{ *fake.Provider }

type plainBox struct{ cove.Sandbox }

func (p plainBoxes) Attach(ctx context.Context, id cove.ID) (cove.Sandbox, error) {
	s, err := p.Provider.Attach(ctx, id)
	return plainBox{s}, err
}

// TestTrialThatCannotBeGivenBack: nobody knows what the files of such a session
// are, so that it ends.
func TestTrialThatCannotBeGivenBack(t *testing.T) {
	w := newWorld(t)
	e := w.open()
	tried, other := mustOpen(t, e.As(boss), cove.Spec{}).ID, mustOpen(t, e.As(boss), cove.Spec{}).ID
	mustTry(t, e.As(boss), tried, "echo x > f", cove.ThenKeep)
	p := w.again(e, func(c *engine.Config) { c.Providers = []cove.Provider{plainBoxes{w.provider}} }).As(boss)
	_, err := p.Sessions().Get(t.Context(), tried)
	wantCode(t, err, cove.NotFound, cove.ReasonNodeLost)
	wantTrial(t, p, other, "")
	if n := held(t, w.provider); n != 1 {
		t.Errorf("%d sandboxes are left, want that of the other session", n)
	}
}

func TestTrialWithFaults(t *testing.T) {
	for _, c := range []struct {
		step string
		then cove.TrialEnd
		left cove.TrialState // of the trial, after the error
	}{
		{"try", cove.ThenKeep, ""},
		{"start", cove.ThenKeep, ""},
		{"start", cove.ThenCommit, ""},
		{"changes", cove.ThenCommit, cove.TrialOpen},
		{"commit", cove.ThenCommit, cove.TrialOpen},
		{"discard", cove.ThenDiscard, cove.TrialOpen},
	} {
		t.Run(c.step+" "+string(c.then), func(t *testing.T) {
			w, p, f := faulty(t, c.step)
			id := mustOpen(t, p, cove.Spec{}).ID
			sh(t, p, id, "echo old > f")
			f.on = true
			if _, err := try(t, p, id, "echo new > f", c.then); err == nil || f.hits == 0 {
				t.Fatalf("the fault was not injected: %v", err)
			}
			f.on = false
			wantTrial(t, p, id, c.left)
			if rec, err := w.store.GetSession(t.Context(), id); err != nil || rec.Trial != c.left {
				t.Errorf("the record says %q, %v", rec.Trial, err)
			}
			if c.left == cove.TrialOpen {
				if err := p.Trials(id).Discard(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := sh(t, p, id, "cat f"); got != "old\n" {
				t.Errorf("the file holds %q", got)
			}
			mustTry(t, p, id, "true", cove.ThenDiscard)
		})
	}
}

// TestTrialThatCannotEvenBeDiscarded stays open, and is said to be.
func TestTrialThatCannotEvenBeDiscarded(t *testing.T) {
	on := false
	w := newWorld(t, func(c *fake.Config) {
		c.Hook = func(step string, _ cove.ID) error {
			if on && (step == "start" || step == "discard") {
				return errInjected
			}
			return nil
		}
	})
	p := w.open().As(boss)
	id := mustOpen(t, p, cove.Spec{}).ID
	on = true
	if _, err := try(t, p, id, "echo x > f", cove.ThenKeep); err == nil {
		t.Fatal("the fault was not injected")
	}
	wantTrial(t, p, id, cove.TrialOpen)
	if err := p.Trials(id).Discard(t.Context()); err == nil {
		t.Error("the fault was not injected")
	}
	wantTrial(t, p, id, cove.TrialOpen)
	on = false
	if err := p.Trials(id).Discard(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestTrialOfASandboxThatCannotTell: as long as nobody can say what is on trial,
// the session is kept and not used.
func TestTrialOfASandboxThatCannotTell(t *testing.T) {
	f := &failing{step: "tried"}
	w := newWorld(t, func(c *fake.Config) { c.Hook = f.hook })
	e := w.open()
	id := mustOpen(t, e.As(boss), cove.Spec{}).ID
	mustTry(t, e.As(boss), id, "echo x > f", cove.ThenKeep)
	f.on = true
	e = w.again(e)
	_, err := e.As(boss).Processes(id).Exec(t.Context(), cove.ExecRequest{Line: "true"})
	wantCode(t, err, cove.Conflict, cove.ReasonProviderDown)
	f.on = false
	p := w.again(e).As(boss)
	wantTrial(t, p, id, cove.TrialOpen)
	if err := p.Trials(id).Commit(t.Context()); err != nil {
		t.Error(err)
	}
	if got := sh(t, p, id, "cat f"); got != "x\n" {
		t.Errorf("the file holds %q", got)
	}
}

// TestTrialIsNotEvicted: a session whose files are on trial is not stopped to
// make room.
func TestTrialIsNotEvicted(t *testing.T) {
	p := newWorld(t).open(oneRoom).As(boss)
	id := mustOpen(t, p, cove.Spec{}).ID
	mustTry(t, p, id, "echo x > f", cove.ThenKeep)
	_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
	wantCode(t, err, cove.Exhausted, cove.ReasonCapacity)
	if err := p.Trials(id).Discard(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, p, cove.Spec{})
}

// TestCloseWhileATrialRuns ends the program, and its caller learns why.
func TestCloseWhileATrialRuns(t *testing.T) {
	w := newWorld(t)
	p := w.open().As(boss)
	id := mustOpen(t, p, cove.Spec{}).ID
	began, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := p.Trials(id).Run(t.Context(), cove.TrialRequest{Then: cove.ThenCommit, ExecRequest: cove.ExecRequest{
			Line: "echo up; sleep 1000", OnOutput: func(cove.Chunk) { close(began) },
		}})
		ended <- err
	}()
	<-began
	if _, err := p.Sessions().Close(t.Context(), id, false); err != nil {
		t.Fatal(err)
	}
	wantCode(t, <-ended, cove.NotFound, cove.ReasonSessionClosed)
	if n := held(t, w.provider); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
}

// TestTrialInASandboxThatIsGone breaks the session, as any other call does.
func TestTrialInASandboxThatIsGone(t *testing.T) {
	w := newWorld(t)
	p := w.open().As(boss)
	id := mustOpen(t, p, cove.Spec{}).ID
	if err := w.provider.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	_, err := try(t, p, id, "true", cove.ThenKeep)
	wantCode(t, err, cove.Conflict, cove.ReasonNodeLost)
}

// TestManyChangesAreCut: the answer is bounded, the counts are of all.
func TestManyChangesAreCut(t *testing.T) {
	p := openEngine(t).As(boss)
	id := mustOpen(t, p, cove.Spec{}).ID
	mustTry(t, p, id, "true", cove.ThenKeep)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	const most = cove.MaxTrialChanges
	for i := range most + 5 {
		if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("f%05d", i), Mode: 0o644, Size: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Files(id).Unpack(t.Context(), ".", &b); err != nil {
		t.Fatal(err)
	}
	out, err := p.Trials(id).Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !out.Truncated || len(out.Changes) != most || out.Created != most+5 || out.Bytes != most+5 || out.Changes[most-1].Path != cove.WorkspacePath+"/f09999" {
		t.Errorf("%d changes, %d created, %d bytes, cut: %v", len(out.Changes), out.Created, out.Bytes, out.Truncated)
	}
}

// TestTrialJournal: what was run stands in the journal as a hash.
func TestTrialJournal(t *testing.T) {
	w := newWorld(t)
	p := w.open().As(boss)
	id := mustOpen(t, p, cove.Spec{}).ID
	mustTry(t, p, id, "echo secret-word", cove.ThenKeep)
	if err := p.Trials(id).Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for ev, err := range w.journal.Events(t.Context(), cove.EventFilter{Session: id, Kind: "trial."}) {
		if err != nil || strings.Contains(string(ev.Data), "secret-word") {
			t.Errorf("%+v %v", ev, err)
		}
		kinds = append(kinds, ev.Kind+" "+string(ev.Phase))
	}
	if got := strings.Join(kinds, ", "); got != "trial.run intent, trial.run outcome, trial.commit intent, trial.commit outcome" {
		t.Errorf("the journal has %s", got)
	}
}
