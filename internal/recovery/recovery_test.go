package recovery_test

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/archive"
	"github.com/cove-sandbox/cove/internal/audit"
	"github.com/cove-sandbox/cove/internal/recovery"
	"github.com/cove-sandbox/cove/provider/fake"
	"github.com/cove-sandbox/cove/store/memory"
	"github.com/cove-sandbox/cove/store/sqlite"
	"github.com/cove-sandbox/cove/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dir string) *recovery.Copies {
	t.Helper()
	path := filepath.Join(dir, "cove.db")
	c, err := recovery.Open(t.Context(), filepath.Join(dir, "records"), func() (bool, error) { return sqlite.Empty(path) },
		func(ctx context.Context) (cove.Store, error) { return sqlite.Open(ctx, path) }, slog.New(slog.DiscardHandler))
	check(t, err)
	return c
}

func TestCopiesAreAStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) cove.Store {
		c, err := recovery.Open(t.Context(), filepath.Join(t.TempDir(), "records"), func() (bool, error) { return true, nil },
			func(context.Context) (cove.Store, error) { return memory.New(), nil }, slog.New(slog.DiscardHandler))
		check(t, err)
		return c
	})
}

func TestCopiesAreDurable(t *testing.T) {
	storetest.RunDurable(t, func(t *testing.T, dir string) cove.Store { return open(t, dir) })
}

// rig is a home without a server.
type rig struct {
	*recovery.Site

	dir string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{dir: t.TempDir()}
	journal, err := audit.Open(audit.Config{Dir: filepath.Join(r.dir, "journal"), Node: "n"})
	check(t, err)
	archives, err := archive.Open(filepath.Join(r.dir, "archives"))
	check(t, err)
	check(t, os.Mkdir(filepath.Join(r.dir, "fake"), 0o700))
	provider, err := fake.New(fake.Config{Dir: filepath.Join(r.dir, "fake")})
	check(t, err)
	r.Site = &recovery.Site{
		Copies: open(t, r.dir), Archives: archives, Providers: []cove.Provider{provider}, Chosen: []string{"fake"}, Journal: journal, Keep: time.Hour,
		Spec: func(provider string) cove.Spec {
			return cove.Spec{Provider: provider, Template: "base", Idle: time.Hour}
		},
		Logger: slog.New(slog.DiscardHandler),
	}
	t.Cleanup(func() {
		for _, err := range []error{r.Copies.Close(), archives.Close(), provider.Close(), journal.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	if items := r.look(t); len(items) != 0 {
		t.Fatalf("an empty home has %+v", items)
	}
	return r
}

func (r *rig) look(t *testing.T) []recovery.Item {
	t.Helper()
	items, err := r.Look(t.Context())
	check(t, err)
	return items
}

// put keeps the record of a session, with an archive if it is stopped.
func (r *rig) put(t *testing.T, s *cove.Session) {
	t.Helper()
	if s.Tenant == "" {
		s.Tenant = cove.DefaultTenant
	}
	check(t, r.Copies.PutSession(t.Context(), s))
	if s.State == cove.Stopped {
		_, err := r.Archives.Put(t.Context(), s.ID, strings.NewReader("files"))
		check(t, err)
	}
}

// lose replaces the database by an empty one, and the copies stay.
func (r *rig) lose(t *testing.T) {
	t.Helper()
	check(t, r.Copies.Close())
	check(t, os.Remove(filepath.Join(r.dir, "cove.db")))
	r.Copies = open(t, r.dir)
}

func (r *rig) copyOf(id cove.ID) string {
	return filepath.Join(r.dir, "records", "session-"+string(id)+".json")
}

func TestCopyFollowsItsRecord(t *testing.T) {
	r := newRig(t)
	s := &cove.Session{ID: cove.NewID(), State: cove.Running}
	there := func() bool {
		_, err := os.Stat(r.copyOf(s.ID))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		return err == nil
	}
	r.put(t, s)
	if info, err := os.Stat(r.copyOf(s.ID)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy: %v, %v", info, err)
	}
	s.State = cove.Ended
	r.put(t, s)
	if there() {
		t.Error("a session that ended has a copy")
	}
	s = &cove.Session{ID: cove.NewID(), State: cove.Creating}
	r.put(t, s)
	check(t, r.Copies.DeleteSession(t.Context(), s.ID))
	if there() {
		t.Error("a record that was removed has a copy")
	}
	// A record of a build that made no copies gets one, and a copy that is older is
	// written again.
	s = &cove.Session{ID: cove.NewID(), State: cove.Running}
	r.put(t, s)
	older, err := os.ReadFile(r.copyOf(s.ID))
	check(t, err)
	r.put(t, s)
	for _, lose := range []func() error{func() error { return os.Remove(r.copyOf(s.ID)) }, func() error { return os.WriteFile(r.copyOf(s.ID), older, 0o600) }} {
		check(t, lose())
		if items := r.look(t); len(items) != 0 {
			t.Errorf("found %+v", items)
		}
		if now, err := os.ReadFile(r.copyOf(s.ID)); err != nil || !strings.Contains(string(now), `"version":2`) {
			t.Errorf("the copy has %s, %v", now, err)
		}
	}
}

// TestCopyThatCannotBeRead is what a power failure may leave of a file.
func TestCopyThatCannotBeRead(t *testing.T) {
	r := newRig(t)
	s := &cove.Session{ID: cove.NewID(), State: cove.Stopped, Provider: "fake"}
	e := &cove.Event{Kind: string(cove.SessionOpen), Phase: cove.AfterIt, Principal: "ann", Tenant: "hers", Session: s.ID, Provider: "fake"}
	check(t, r.Journal.Append(t.Context(), e, true))
	r.put(t, s)
	check(t, os.Truncate(r.copyOf(s.ID), 0))
	if items := r.look(t); len(items) != 0 {
		t.Errorf("what the database knows is found: %+v", items)
	}
	r.lose(t)
	check(t, os.Truncate(r.copyOf(s.ID), 0))
	items := r.look(t)
	if len(items) != 1 || items[0].Tenant != "hers" || items[0].Owner != "ann" || items[0].Left != recovery.Archive || items[0].Source != recovery.FromJournal {
		t.Fatalf("found %+v", items)
	}
	_, err := r.TakeUp(t.Context(), "op")
	check(t, err)
	rec, err := r.Copies.GetSession(t.Context(), s.ID)
	if err != nil || rec.State != cove.Stopped || !rec.Archived || rec.Tenant != "hers" || rec.Spec.Provider != "fake" || !rec.ExpiresAt.After(time.Now()) {
		t.Errorf("the record is %+v, %v", rec, err)
	}
	if items := r.look(t); len(items) != 0 {
		t.Errorf("found again: %+v", items)
	}
}

// TestOlderDatabaseGivesUpTheName has a session that ended after the database was copied,
// and whose user and thread another one has since.
func TestOlderDatabaseGivesUpTheName(t *testing.T) {
	r := newRig(t)
	ended := &cove.Session{ID: cove.NewID(), State: cove.Running, Provider: "fake", Spec: cove.Spec{User: "ann"}}
	r.put(t, ended)
	check(t, os.Remove(r.copyOf(ended.ID)))
	next := &cove.Session{ID: cove.NewID(), State: cove.Stopped, Provider: "fake", Spec: cove.Spec{User: "bob"}}
	r.put(t, next)
	data, err := os.ReadFile(r.copyOf(next.ID))
	check(t, err)
	check(t, r.Copies.DeleteSession(t.Context(), next.ID))
	check(t, os.WriteFile(r.copyOf(next.ID), []byte(strings.Replace(string(data), "bob", "ann", 1)), 0o600))
	if items := r.look(t); len(items) != 1 || items[0].ID != next.ID {
		t.Fatalf("found %+v", items)
	}
	_, err = r.TakeUp(t.Context(), "op")
	check(t, err)
	was, err := r.Copies.GetSession(t.Context(), ended.ID)
	if err != nil || was.State != cove.Ended || was.Cause != cove.ReasonNodeLost {
		t.Errorf("the one that ended is %+v, %v", was, err)
	}
	if now, err := r.Copies.GetSession(t.Context(), next.ID); err != nil || now.State != cove.Stopped || now.Spec.User != "ann" {
		t.Errorf("the other is %+v, %v", now, err)
	}
}

// silent is a provider that does not say which sandboxes it has.
type silent struct{ cove.Provider }

func (silent) List(context.Context) iter.Seq2[cove.ID, error] {
	return func(yield func(cove.ID, error) bool) {
		yield("", cove.Errorf(cove.Unavailable, "the engine does not answer"))
	}
}

// TestProviderThatDoesNotSay keeps a session of which it is not known whether it lives.
func TestProviderThatDoesNotSay(t *testing.T) {
	r := newRig(t)
	s := &cove.Session{ID: cove.NewID(), State: cove.Running, Provider: "fake"}
	r.put(t, s)
	r.Providers = []cove.Provider{silent{r.Providers[0]}}
	r.lose(t)
	if items := r.look(t); len(items) != 1 || items[0].Left != recovery.Unknown || items[0].State != cove.Running {
		t.Fatalf("found %+v", items)
	}
	if _, err := os.Stat(r.copyOf(s.ID)); err != nil {
		t.Error(err)
	}
	done, err := r.TakeUp(t.Context(), "op")
	if rec, gerr := r.Copies.GetSession(t.Context(), s.ID); err != nil || len(done) != 1 || gerr != nil || rec.State != cove.Running {
		t.Errorf("%+v, %v; %+v, %v", done, err, rec, gerr)
	}
}

// TestHomeWithoutAnything has neither copies nor a journal that knows of a session:
// archives are of the default tenant then.
func TestHomeWithoutAnything(t *testing.T) {
	r := newRig(t)
	id := cove.NewID()
	_, err := r.Archives.Put(t.Context(), id, strings.NewReader("files"))
	check(t, err)
	if items := r.look(t); len(items) != 0 { // an orphan of a crash, in a database that has been used
		t.Errorf("found %+v", items)
	}
	r.lose(t)
	items := r.look(t)
	if len(items) != 1 || items[0].ID != id || items[0].Tenant != cove.DefaultTenant || items[0].Source != recovery.FromNothing {
		t.Fatalf("found %+v", items)
	}
	check(t, r.Copies.Close())
	r.Copies = open(t, r.dir)
	if again := r.look(t); len(again) != 1 { // the new database is not empty any more
		t.Errorf("after another start: %+v", again)
	}
}

// TestJournalOfSessionsThatAreGone has an empty database and a journal of a session of
// which nothing is left: it is told, and lost when the operator has seen it.
func TestJournalOfSessionsThatAreGone(t *testing.T) {
	r := newRig(t)
	gone, closed := cove.NewID(), cove.NewID()
	for _, e := range []cove.Event{
		{Kind: string(cove.SessionOpen), Session: gone}, {Kind: string(cove.SessionOpen), Session: closed}, {Kind: string(cove.SessionClose), Session: closed},
	} {
		e.Phase, e.Tenant, e.Principal, e.Provider = cove.AfterIt, "hers", "ann", "fake"
		check(t, r.Journal.Append(t.Context(), &e, true))
	}
	r.lose(t)
	if items := r.look(t); len(items) != 1 || items[0].ID != gone || items[0].Tenant != "hers" || items[0].Left != recovery.Nothing {
		t.Fatalf("found %+v", items)
	}
	_, err := r.TakeUp(t.Context(), "op")
	check(t, err)
	var told int
	for e, err := range r.Journal.Events(t.Context(), cove.EventFilter{Kind: "session.lost", Session: gone}) {
		if check(t, err); e.Tenant == "hers" {
			told++
		}
	}
	if items := r.look(t); told != 1 || len(items) != 0 {
		t.Errorf("told %d times, found %+v", told, items)
	}
}

// TestDraftsThatACrashLeft stops at each step of a write.
func TestDraftsThatACrashLeft(t *testing.T) {
	r := newRig(t)
	s := &cove.Session{ID: cove.NewID(), State: cove.Stopped, Provider: "fake"}
	r.put(t, s)
	whole, err := os.ReadFile(r.copyOf(s.ID))
	check(t, err)
	draft := r.copyOf(s.ID) + ".draft"
	for name, crash := range map[string]func(){
		"while the draft was written":   func() { check(t, os.WriteFile(draft, whole[:10], 0o600)) },
		"before the older copy went":    func() { check(t, os.WriteFile(draft, whole, 0o600)) },
		"before the draft had its name": func() { check(t, os.Rename(r.copyOf(s.ID), draft)) },
	} {
		crash()
		r.lose(t)
		if items := r.look(t); len(items) != 1 || items[0].ID != s.ID || items[0].Source != recovery.FromCopy {
			t.Errorf("%s: found %+v", name, items)
		}
		if _, err := os.Stat(draft); err == nil {
			t.Errorf("%s: the draft is still there", name)
		}
	}
}

// TestTakeUpThatFailsInPart has two sessions of one user and thread, of which the
// database takes one: the other is still to be decided about, and can be discarded.
func TestTakeUpThatFailsInPart(t *testing.T) {
	r := newRig(t)
	one := &cove.Session{ID: cove.NewID(), State: cove.Stopped, Provider: "fake", Spec: cove.Spec{User: "ann"}}
	two := &cove.Session{ID: cove.NewID(), State: cove.Stopped, Provider: "fake", Spec: cove.Spec{User: "bob"}}
	r.put(t, one)
	r.put(t, two)
	data, err := os.ReadFile(r.copyOf(two.ID))
	check(t, err)
	check(t, os.WriteFile(r.copyOf(two.ID), []byte(strings.Replace(string(data), "bob", "ann", 1)), 0o600))
	r.lose(t)
	done, err := r.TakeUp(t.Context(), "op")
	if len(done) == 1 && done[0].ID == two.ID { // ids of one millisecond come in any order
		one, two = two, one
	}
	if len(done) != 1 || done[0].ID != one.ID || cove.CodeOf(err) != cove.Conflict || !strings.Contains(cove.MessageOf(err), string(two.ID)) {
		t.Fatalf("taken up %+v, %v", done, err)
	}
	if items := r.look(t); len(items) != 1 || items[0].ID != two.ID {
		t.Errorf("left: %+v", items)
	}
	if done, err = r.Discard(t.Context(), "op", []cove.ID{two.ID}); err != nil || len(done) != 1 {
		t.Errorf("discarded %+v, %v", done, err)
	}
	if items := r.look(t); len(items) != 0 {
		t.Errorf("left: %+v", items)
	}
	for id, err := range r.Archives.List(t.Context()) {
		if check(t, err); id != one.ID {
			t.Errorf("the archive of %s is still there", id)
		}
	}
}

// TestOlderRecordOfWhichNothingIsLeft is a power failure that cost the database its last
// write: the session's sandbox went with the machine, and its older record ends.
func TestOlderRecordOfWhichNothingIsLeft(t *testing.T) {
	r := newRig(t)
	s := &cove.Session{ID: cove.NewID(), State: cove.Running, Provider: "fake"}
	r.put(t, s)
	data, err := os.ReadFile(r.copyOf(s.ID))
	check(t, err)
	check(t, os.WriteFile(r.copyOf(s.ID), []byte(strings.Replace(string(data), `"version":1`, `"version":5`, 1)), 0o600))
	for range 2 {
		if items := r.look(t); len(items) != 0 {
			t.Errorf("found %+v", items)
		}
	}
	if rec, err := r.Copies.GetSession(t.Context(), s.ID); err != nil || rec.State != cove.Ended || rec.Cause != cove.ReasonNodeLost {
		t.Errorf("the record is %+v, %v", rec, err)
	}
	var told int
	for _, err := range r.Journal.Events(t.Context(), cove.EventFilter{Kind: "session.lost", Session: s.ID}) {
		check(t, err)
		told++
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

// TestCausesAreTakenUp: a session that a caller stopped or paused does not come back by
// itself because its database was lost, and one that was in error is again as it was.
func TestCausesAreTakenUp(t *testing.T) {
	r := newRig(t)
	stopped := &cove.Session{ID: cove.NewID(), State: cove.Stopped, Cause: cove.ReasonSessionStopped, Provider: "fake"}
	paused := &cove.Session{ID: cove.NewID(), State: cove.Paused, Cause: cove.ReasonSessionPaused, Provider: "fake"}
	failed := &cove.Session{
		ID: cove.NewID(), State: cove.Failed, Cause: cove.ReasonProviderDown, Was: cove.Paused, WasCause: cove.ReasonSessionPaused, Provider: "fake",
	}
	for _, s := range []*cove.Session{stopped, paused, failed} {
		r.put(t, s)
	}
	r.Providers = []cove.Provider{silent{r.Providers[0]}}
	r.lose(t)
	_, err := r.TakeUp(t.Context(), "op")
	check(t, err)
	for _, want := range []*cove.Session{stopped, paused, {ID: failed.ID, State: cove.Paused, Cause: cove.ReasonSessionPaused}} {
		got, err := r.Copies.GetSession(t.Context(), want.ID)
		if err != nil || got.State != want.State || got.Cause != want.Cause || got.Was != "" || got.WasCause != "" || got.AutoResumes() {
			t.Errorf("the record is %+v, %v; want it %s, %s", got, err, want.State, want.Cause)
		}
	}
}
