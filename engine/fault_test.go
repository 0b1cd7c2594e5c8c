package engine_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/provider/fake"
)

var errInjected = errors.New("injected")

// failing is a hook that fails one step while on is set.
type failing struct {
	step string
	on   bool
	hits int
	with error // nil: errInjected
}

func (f *failing) hook(step string, _ cove.ID) error {
	if !f.on || step != f.step {
		return nil
	}
	f.hits++
	if f.with != nil {
		return f.with
	}
	return errInjected
}

func faulty(t *testing.T, step string, change ...func(*engine.Config)) (*world, cove.Platform, *failing) {
	t.Helper()
	f := &failing{step: step}
	w := newWorld(t, func(c *fake.Config) { c.Hook = f.hook })
	return w, w.open(change...).As(boss), f
}

// brokenJournal refuses every line once broken is set.
type brokenJournal struct {
	cove.Journal

	broken bool
	phase  cove.Phase // only lines of this phase, "" for all
}

func (j *brokenJournal) Append(ctx context.Context, e *cove.Event, durable bool) error {
	if j.broken && (j.phase == "" || j.phase == e.Phase) {
		return cove.Errorf(cove.Unavailable, "no space left")
	}
	return j.Journal.Append(ctx, e, durable)
}

func TestNothingHappensWithoutAJournal(t *testing.T) {
	w := newWorld(t)
	j := &brokenJournal{Journal: w.journal}
	p := w.open(func(c *engine.Config) { c.Journal = j }).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	j.broken = true
	_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
	wantCode(t, err, cove.Unavailable, "")
	if !strings.Contains(cove.MessageOf(err), "journal") || cove.RemedyOf(err) == "" {
		t.Errorf("the message is %q", cove.MessageOf(err))
	}
	_, err = p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "touch made"})
	wantCode(t, err, cove.Unavailable, "")
	wantCode(t, p.Files(s.ID).Write(t.Context(), "made", strings.NewReader("x"), 0o644), cove.Unavailable, "")
	_, err = p.Sessions().Close(t.Context(), s.ID, false)
	wantCode(t, err, cove.Unavailable, "")
	if n := held(t, w.provider); n != 1 {
		t.Errorf("%d sandboxes exist, want the one from before", n)
	}
	j.broken = false
	if got := sh(t, p, s.ID, "ls"); got != "" {
		t.Errorf("something happened without a journal: %q", got)
	}
}

// TestWhatRanIsAnswered: where the journal cannot take down how a program ended, its
// caller gets the result all the same: after an error it would be run again.
func TestWhatRanIsAnswered(t *testing.T) {
	w := newWorld(t)
	j := &brokenJournal{Journal: w.journal, phase: cove.AfterIt}
	p := w.open(func(c *engine.Config) { c.Journal = j }).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	j.broken = true
	x, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "echo ran; exit 3"})
	if err != nil || x.ExitCode != 3 || string(x.Stdout.Data) != "ran\n" {
		t.Errorf("got %+v, %v", x, err)
	}
	started, err := p.Processes(s.ID).Start(t.Context(), cove.ExecRequest{Line: "true"})
	if err != nil || started.PID == 0 {
		t.Errorf("in the background: %+v, %v", started, err)
	}
}

// TestOutputThatCannotBeKeptIsSaid: the program ran, and the answer has its end, the ends
// of its output, and why the rest is not kept.
func TestOutputThatCannotBeKeptIsSaid(t *testing.T) {
	w := newWorld(t)
	p := w.open().As(boss)
	s := mustOpen(t, p, cove.Spec{})
	if err := w.output.Close(); err != nil { // nothing can be written there any more
		t.Fatal(err)
	}
	for _, line := range []string{"seq 1 20000; exit 3", "seq 1 2000000; exit 3"} {
		x, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: line})
		if err != nil {
			t.Fatal(err)
		}
		if x.ExitCode != 3 || !x.Stdout.Truncated || x.OutputID != "" || !strings.Contains(x.OutputLost, "kept") || !strings.HasPrefix(string(x.Stdout.Data), "1\n2\n") || !strings.HasSuffix(string(x.Stdout.Data), "000\n") {
			t.Errorf("exit code %d, truncated %t, handle %q, lost %q", x.ExitCode, x.Stdout.Truncated, x.OutputID, x.OutputLost)
		}
	}
	x, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "echo short"})
	if err != nil || x.OutputLost != "" {
		t.Errorf("got %+v, %v", x, err)
	}
}

// fullJournal is one whose disk is full: it has no room for new things.
type fullJournal struct{ cove.Journal }

func (fullJournal) Room() error {
	return cove.Errorf(cove.Exhausted, "the disk is full").Reason(cove.ReasonDiskReserve)
}

// TestClosingGoesOnOnAFullDisk: what begins something is refused before it begins, and
// what gives room back goes on.
func TestClosingGoesOnOnAFullDisk(t *testing.T) {
	w := newWorld(t)
	first := w.open()
	p := first.As(boss)
	s := mustOpen(t, p, cove.Spec{})
	saved, err := p.Snapshots().Snapshot(t.Context(), s.ID, cove.SnapshotRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p = w.open(func(c *engine.Config) { c.Journal = fullJournal{w.journal} }).As(boss)
	_, err = p.Sessions().Open(t.Context(), cove.OpenRequest{})
	wantCode(t, err, cove.Exhausted, cove.ReasonDiskReserve)
	_, err = p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "true"})
	wantCode(t, err, cove.Exhausted, cove.ReasonDiskReserve)
	_, err = p.Sessions().Close(t.Context(), cove.NewID(), false) // there is nothing to close
	wantCode(t, err, cove.Exhausted, cove.ReasonDiskReserve)
	if err := p.Snapshots().Delete(t.Context(), saved.ID); err != nil {
		t.Errorf("delete a snapshot: %v", err)
	}
	if _, err := p.Sessions().Close(t.Context(), s.ID, false); err != nil {
		t.Errorf("close: %v", err)
	}
	if n := held(t, w.provider); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
}

func TestACreateThatFailsLeavesNothing(t *testing.T) {
	for _, step := range []string{"create.begin", "create.made"} {
		w, p, f := faulty(t, step, func(c *engine.Config) { c.MaxSessions = 1 })
		f.on = true
		_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{User: "u"}})
		if err == nil || f.hits == 0 {
			t.Fatalf("%s: the fault was not injected: %v", step, err)
		}
		if n := held(t, w.provider); n != 0 {
			t.Errorf("%s: %d sandboxes are left", step, n)
		}
		for s := range w.store.Sessions(t.Context(), cove.SessionFilter{}) {
			t.Errorf("%s: a record is left: %+v", step, s)
		}
		f.on = false
		mustOpen(t, p, cove.Spec{User: "u"}) // key and room are free again
	}
}

func TestADestroyThatFailsIsTriedAgain(t *testing.T) {
	w, p, f := faulty(t, "destroy.begin")
	s := mustOpen(t, p, cove.Spec{})
	f.on = true
	if _, err := p.Sessions().Close(t.Context(), s.ID, false); err != nil {
		t.Fatal(err)
	}
	if n := held(t, w.provider); n != 1 {
		t.Fatalf("the fault was not injected: %d sandboxes", n)
	}
	f.on = false
	control(t, p, "orphans", cove.RunTask)
	if n := held(t, w.provider); n != 0 {
		t.Errorf("the orphans task left %d sandboxes", n)
	}
	st, err := p.Admin().Tasks(t.Context())
	if err != nil || st[1].Name != "orphans" || st[1].LastDone != 1 {
		t.Errorf("the task says %+v (%v), want one orphan", st, err)
	}
}

// fullArchives has no room for anything.
type fullArchives struct{ cove.Archives }

func (fullArchives) Put(context.Context, cove.ID, io.Reader) (cove.Bytes, error) {
	return 0, cove.Errorf(cove.Exhausted, "no space left for archives")
}

func TestAStopThatCannotKeepTheFilesDoesNotHappen(t *testing.T) {
	w := newWorld(t)
	p := w.open(func(c *engine.Config) { c.Archives = fullArchives{c.Archives} }).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	sh(t, p, s.ID, "echo precious > file")
	_, err := p.Sessions().Stop(t.Context(), s.ID)
	wantCode(t, err, cove.Exhausted, "")
	if got := sh(t, p, s.ID, "cat file"); got != "precious\n" {
		t.Errorf("after a stop that failed the file holds %q", got)
	}
}

func TestAnEvictionThatFailsEvictsNobody(t *testing.T) {
	w := newWorld(t)
	p := w.open(func(c *engine.Config) {
		c.Archives, c.MaxSessions, c.Evict = fullArchives{c.Archives}, 1, true
	}).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
	wantCode(t, err, cove.Exhausted, "")
	sh(t, p, s.ID, "true")
	if st, err := p.Admin().Stats(t.Context()); err != nil || st.ActiveSessions != 1 {
		t.Errorf("%+v, %v", st, err)
	}
}

func TestASandboxThatVanishesIsSaid(t *testing.T) {
	w := newWorld(t)
	p := w.open().As(boss)
	s := mustOpen(t, p, cove.Spec{User: "u"})
	if err := w.provider.Remove(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	_, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "true"})
	wantCode(t, err, cove.Conflict, "")
	if got := state(t, p, s.ID); got != cove.Failed {
		t.Errorf("the session is %s, want error", got)
	}
	again := mustOpen(t, p, cove.Spec{User: "u"})
	if again.ID == s.ID {
		t.Error("a broken session was handed out")
	}
	_, err = p.Sessions().Get(t.Context(), s.ID)
	wantCode(t, err, cove.NotFound, cove.ReasonNodeLost)
}

func TestRecoveryEndsWhatIsLost(t *testing.T) {
	w := newWorld(t)
	first := w.open()
	p := first.As(boss)
	kept := mustOpen(t, p, cove.Spec{User: "kept"})
	lost := mustOpen(t, p, cove.Spec{User: "lost"})
	sh(t, p, kept.ID, "echo here > file")
	stopped := mustOpen(t, p, cove.Spec{User: "stopped"})
	sh(t, p, stopped.ID, "echo archived > file")
	if _, err := p.Sessions().Stop(t.Context(), stopped.ID); err != nil {
		t.Fatal(err)
	}
	orphan := cove.NewID()
	spec := kept.Spec
	if _, err := w.provider.Create(t.Context(), orphan, spec); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.provider.Remove(t.Context(), lost.ID); err != nil {
		t.Fatal(err)
	}
	half := cove.Session{ID: cove.NewID(), Tenant: cove.DefaultTenant, State: cove.Creating, Provider: "fake"}
	if err := w.store.PutSession(t.Context(), &half); err != nil {
		t.Fatal(err)
	}
	if err := w.provider.Close(); err != nil {
		t.Fatal(err)
	}

	p = w.open().As(boss)
	if got := sh(t, p, kept.ID, "cat file"); got != "here\n" {
		t.Errorf("the session that was kept has %q", got)
	}
	_, err := p.Sessions().Get(t.Context(), lost.ID)
	wantCode(t, err, cove.NotFound, cove.ReasonNodeLost)
	_, err = p.Sessions().Get(t.Context(), half.ID)
	wantCode(t, err, cove.NotFound, "")
	back := mustOpen(t, p, cove.Spec{User: "stopped"})
	if got := sh(t, p, back.ID, "cat file"); back.ID != stopped.ID || got != "archived\n" {
		t.Errorf("the stopped session came back as %s with %q", back.ID, got)
	}
	if n := held(t, w.provider); n != 2 {
		t.Errorf("the provider holds %d sandboxes, want 2: the orphan goes", n)
	}
}

func TestACrashWhileWakingKeepsTheFiles(t *testing.T) {
	w := newWorld(t)
	first := w.open()
	p := first.As(boss)
	s := mustOpen(t, p, cove.Spec{})
	sh(t, p, s.ID, "echo safe > file")
	if _, err := p.Sessions().Stop(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The record says running, the archive is still there, and no sandbox is.
	rec, err := w.store.GetSession(t.Context(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	rec.State = cove.Running
	if err := w.store.PutSession(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	p = w.open().As(boss)
	if got := state(t, p, s.ID); got != cove.Stopped {
		t.Fatalf("the session is %s, want stopped", got)
	}
	if _, err := p.Sessions().Start(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, p, s.ID, "cat file"); got != "safe\n" {
		t.Errorf("the file holds %q", got)
	}
}

func TestLongOutputSurvivesARestart(t *testing.T) {
	w := newWorld(t)
	first := w.open()
	p := first.As(boss)
	s := mustOpen(t, p, cove.Spec{})
	x, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "seq 1 20000"})
	if err != nil || x.OutputID == "" {
		t.Fatalf("%+v, %v", x, err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p = w.open().As(boss)
	page, err := p.Processes(s.ID).Output(t.Context(), x.OutputID, cove.OutputRange{Grep: "^12345$"})
	if err != nil || string(page.Data) != "12345\n" {
		t.Errorf("%q, %v", page.Data, err)
	}
	if _, err := p.Sessions().Close(t.Context(), s.ID, false); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(w.dir, "output")); err != nil || len(left) != 0 {
		t.Errorf("after closing %v is left (%v)", left, err)
	}
}

func TestABackgroundProgramIsNotFoundAfterARestart(t *testing.T) {
	w := newWorld(t, func(c *fake.Config) { c.Keeper = nil })
	first := w.open()
	p := first.As(boss)
	s := mustOpen(t, p, cove.Spec{})
	info, err := p.Processes(s.ID).Start(t.Context(), cove.ExecRequest{Line: "sleep 1000"})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p = w.open().As(boss)
	_, err = p.Processes(s.ID).Wait(t.Context(), info.PID)
	wantCode(t, err, cove.NotFound, "")
	if !strings.Contains(cove.MessageOf(err), "server stopped") {
		t.Errorf("the message is %q", cove.MessageOf(err))
	}
	next, err := p.Processes(s.ID).Start(t.Context(), cove.ExecRequest{Line: "true"})
	if err != nil || next.PID <= info.PID {
		t.Errorf("process number %d was given out again (%v)", next.PID, err)
	}
}

func TestAClosedEngineDoesNothing(t *testing.T) {
	w := newWorld(t)
	e := w.open()
	p := e.As(boss)
	s := mustOpen(t, p, cove.Spec{})
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
	wantCode(t, err, cove.Unavailable, "")
	_, err = p.Sessions().Get(t.Context(), s.ID)
	wantCode(t, err, cove.Unavailable, "")
	_, err = p.Runs().Submit(t.Context(), cove.RunRequest{Type: cove.QuerySQL, SQL: "SELECT 1"})
	wantCode(t, err, cove.Unavailable, "")
	if err := e.Close(t.Context()); err != nil {
		t.Errorf("closing twice gives %v", err)
	}
}

func TestARunCutShortIsSaid(t *testing.T) {
	w := newWorld(t)
	rec := cove.Run{ID: cove.NewID(), Tenant: cove.DefaultTenant, State: cove.RunRunning, CreatedAt: time.Now()}
	if err := w.store.PutRun(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
	p := w.open().As(boss)
	got, err := p.Runs().Get(t.Context(), rec.ID)
	if err != nil || got.State != cove.RunFailed || got.Answer.Error.Type != cove.RunUnavailable || got.Answer.Provider != "fake" {
		t.Errorf("%+v, %v", got, err)
	}
}

// closing is a reader in the middle of which somebody closes the session.
type closing struct {
	close func()
	read  int
}

func (c *closing) Read(b []byte) (int, error) {
	if c.read++; c.read == 2 {
		c.close()
	}
	if c.read > 3 {
		return 0, io.EOF
	}
	return copy(b, "some content"), nil
}

func TestAWriteDuringACloseSaysThatItWasClosed(t *testing.T) {
	p := newWorld(t).open().As(boss)
	s := mustOpen(t, p, cove.Spec{})
	in := &closing{close: func() {
		if _, err := p.Sessions().Close(t.Context(), s.ID, false); err != nil {
			t.Error(err)
		}
	}}
	err := p.Files(s.ID).Write(t.Context(), "file", in, 0o644)
	wantCode(t, err, cove.NotFound, cove.ReasonSessionClosed)
}
