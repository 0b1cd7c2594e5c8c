package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/provider/fake"
)

// lodger answers a question in a place. The question is the key of the place, "" for
// -, and words: hold waits for leave or the end of the run, broken breaks the place.
type lodger struct {
	fake.Runner

	in    chan cove.RunSandbox
	leave chan struct{}
}

func newLodger() *lodger {
	return &lodger{in: make(chan cove.RunSandbox, 100), leave: make(chan struct{})}
}

func (r *lodger) Run(ctx context.Context, host cove.RunHost, q cove.RunQuestion) (*cove.RunAnswer, *cove.RunDecision, error) {
	words := strings.Fields(q.Request.SQL)
	want := cove.RunPlace{Key: strings.TrimPrefix(words[0], "-"), Provider: q.Request.Provider, Flavor: q.Request.Flavor, Session: q.Request.Session}
	place, done, err := host.Place(ctx, want)
	if err != nil {
		return nil, nil, err
	}
	r.in <- place
	if slices.Contains(words, "hold") {
		select {
		case <-r.leave:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	done(slices.Contains(words, "broken"))
	if err != nil {
		return nil, nil, err
	}
	a, d, err := r.Runner.Run(ctx, host, q)
	a.Provider = place.Provider
	return a, d, err
}

func (r *lodger) lodge(c *engine.Config) { c.Runners = map[string]cove.Runner{"": r} }

func caller(name, tenant string) cove.Principal {
	return cove.Principal{Name: name, Tenant: tenant, Scopes: []cove.Scope{cove.ScopeAll}}
}

func submit(t *testing.T, p cove.Platform, sql string) cove.ID {
	t.Helper()
	run, err := p.Runs().Submit(t.Context(), cove.RunRequest{Type: cove.QuerySQL, SQL: sql})
	if err != nil {
		t.Fatal(err)
	}
	return run.ID
}

func answer(t *testing.T, p cove.Platform, id cove.ID) *cove.Run {
	t.Helper()
	run, err := p.Runs().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// asked asks and returns the place that answered.
func (r *lodger) asked(t *testing.T, p cove.Platform, sql string) cove.ID {
	t.Helper()
	if run := answer(t, p, submit(t, p, sql)); run.State != cove.RunSucceeded {
		t.Fatalf("%s: %+v", sql, run.Answer.Error)
	}
	return (<-r.in).ID()
}

// TestPlacesAreKeptForOneCaller: the same caller finds its place again, by key; nobody
// else does, of the same tenant neither.
func TestPlacesAreKeptForOneCaller(t *testing.T) {
	w, r := newWorld(t), newLodger()
	e := w.open(r.lodge)
	ann, bob, eve := e.As(caller("ann", "acme")), e.As(caller("bob", "acme")), e.As(caller("ann", "rival"))
	first := r.asked(t, ann, "a")
	if again := r.asked(t, ann, "a"); again != first {
		t.Errorf("the second question is answered in %s, not in %s", again, first)
	}
	others := []cove.ID{first, r.asked(t, ann, "b"), r.asked(t, bob, "a"), r.asked(t, eve, "a")}
	slices.Sort(others)
	if len(slices.Compact(others)) != 4 {
		t.Errorf("some share a place: %v", others)
	}
	if once := r.asked(t, bob, "-"); slices.Contains(others, once) || slices.Contains(sandboxes(t, w.provider), once) {
		t.Error("a place without a key is kept, or was")
	}
	if _, err := e.As(boss).Admin().ControlTask(t.Context(), "orphans", cove.RunTask); err != nil || !slices.Contains(sandboxes(t, w.provider), first) {
		t.Errorf("the orphans task took a place: %v", err)
	}
	broken := r.asked(t, ann, "a broken")
	if next := r.asked(t, ann, "a"); next == broken {
		t.Error("a broken place is used again")
	}
	stats, err := e.As(boss).Admin().Stats(t.Context())
	if err != nil || stats.ActiveSessions != 0 || stats.Memory < 3*cove.GiB {
		t.Errorf("the stats are %+v, %v", stats, err)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := sandboxes(t, w.provider); len(left) != 0 {
		t.Errorf("left after the end: %v", left)
	}
}

// TestPlacesAreOneAtATime: two questions at once have two places, and a tenant has so
// many and no more; what is free makes room.
func TestPlacesAreOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld(t), newLodger()
		e, err := w.tryOpen(r.lodge)
		if err != nil {
			t.Fatal(err)
		}
		defer w.shut(e, w.provider)
		p := e.As(caller("ann", "acme"))
		r.asked(t, p, "old") // goes for the fourth
		var ids []cove.ID
		seen := map[cove.ID]bool{}
		for range 4 {
			ids = append(ids, submit(t, p, "a hold"))
			seen[(<-r.in).ID()] = true
		}
		if len(seen) != 4 || len(sandboxes(t, w.provider)) != 4 {
			t.Errorf("four questions have %d places of %d", len(seen), len(sandboxes(t, w.provider)))
		}
		stats, err := p.Admin().Stats(t.Context())
		if err != nil || stats.Runs != 4 {
			t.Errorf("%d runs go on, %v", stats.Runs, err)
		}
		fifth := submit(t, p, "a")
		synctest.Wait()
		if other := r.asked(t, e.As(caller("bob", "rival")), "a"); seen[other] {
			t.Error("another tenant got a place of the first")
		}
		r.leave <- struct{}{} // and the fifth goes on in that place
		if run := answer(t, p, fifth); run.State != cove.RunSucceeded || !seen[(<-r.in).ID()] {
			t.Errorf("who waited: %+v", run.Answer)
		}
		ids = append(ids, submit(t, p, "a hold"))
		<-r.in
		late := answer(t, p, submit(t, p, "a"))
		if late.Answer.Error == nil || late.Answer.Error.Type != cove.RunUnavailable || !strings.Contains(late.Answer.Error.Message, "10s") {
			t.Errorf("who waited for nothing: %+v", late.Answer)
		}
		for range 4 {
			r.leave <- struct{}{}
		}
		for _, id := range ids {
			answer(t, p, id)
		}
		<-time.After(7 * time.Minute)
		synctest.Wait()
		if n := len(sandboxes(t, w.provider)); n != 0 {
			t.Errorf("%d places after nobody used them for long", n)
		}
	})
}

// TestPlacesMakeRoom: a session that needs the memory gets it, and so does a place
// where it is a clean room's.
func TestPlacesMakeRoom(t *testing.T) {
	w, r := newWorld(t), newLodger()
	e := w.open(r.lodge, func(c *engine.Config) { c.MaxMemory = 2 * cove.GiB })
	p := e.As(caller("ann", "acme"))
	r.asked(t, p, "a")
	r.asked(t, p, "b")
	r.asked(t, p, "c") // makes room of the others
	mustOpen(t, p, cove.Spec{})
	mustOpen(t, p, cove.Spec{})
	if n := len(sandboxes(t, w.provider)); n != 2 {
		t.Errorf("%d sandboxes after the memory was needed", n)
	}
	run := answer(t, p, submit(t, p, "a"))
	if run.Answer.Error == nil || run.Answer.Error.Type != cove.RunUnavailable {
		t.Errorf("without memory: %+v", run.Answer)
	}
}

// TestRevokedKeysLoseTheirPlaces: those that are free at once, and what goes on ends.
func TestRevokedKeysLoseTheirPlaces(t *testing.T) {
	w, r := newWorld(t), newLodger()
	e := w.open(r.lodge)
	admin := e.As(boss).Admin()
	key, _, err := admin.CreateKey(t.Context(), cove.KeyRequest{Name: "k", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeRuns}})
	if err != nil {
		t.Fatal(err)
	}
	p := e.As(caller(string(key.ID), "acme"))
	r.asked(t, p, "a")
	other := r.asked(t, e.As(caller("other", "acme")), "a")
	going := submit(t, p, "b hold")
	<-r.in
	if err := admin.RevokeKey(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	if run := answer(t, p, going); run.State != cove.RunFailed || !strings.Contains(run.Answer.Error.Message, "revoked") {
		t.Errorf("what went on: %+v", run.Answer)
	}
	if left := sandboxes(t, w.provider); !slices.Equal(left, []cove.ID{other}) {
		t.Errorf("left is %v, want only %s", left, other)
	}
}

// TestPlaceAfterACrash: what a killed engine leaves is removed by the next.
func TestPlaceAfterACrash(t *testing.T) {
	w, r := newWorld(t), newLodger()
	r.asked(t, w.open(r.lodge).As(boss), "a")
	w.open(r.lodge) // the first one was never closed
	if ids := sandboxes(t, w.provider); len(ids) != 0 {
		t.Errorf("still there: %v", ids)
	}
}

func TestPlaceThatCannotBeMade(t *testing.T) {
	var fail bool
	w := newWorld(t, func(c *fake.Config) {
		c.Hook = func(step string, _ cove.ID) error {
			if fail && strings.HasPrefix(step, "create") {
				return errors.New("no more sandboxes")
			}
			return nil
		}
	})
	r := newLodger()
	p := w.open(r.lodge).As(boss)
	fail = true
	for range 20 { // more than there may be
		if run := answer(t, p, submit(t, p, "a")); run.Answer.Error == nil || run.Answer.Provider != "fake" {
			t.Fatalf("got %+v", run.Answer)
		}
	}
	fail = false
	r.asked(t, p, "a")
	for field, req := range map[string]cove.RunRequest{"provider": {Provider: "nobody"}, "flavor": {Flavor: "huge"}} {
		req.Type, req.SQL = cove.QuerySQL, "a"
		_, err := p.Runs().Submit(t.Context(), req)
		if e, ok := errors.AsType[*cove.Error](err); !ok || e.Code != cove.Invalid || e.Details["field"] != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestQuestionsOfASession run in its sandbox, one after the other, and only for its
// tenant and who may run programs.
func TestQuestionsOfASession(t *testing.T) {
	w, r := newWorld(t), newLodger()
	e := w.open(r.lodge)
	p := e.As(caller("ann", "acme"))
	s := mustOpen(t, p, cove.Spec{})
	req := cove.RunRequest{Type: cove.QuerySQL, SQL: "a", Session: s.ID}
	var keeps [2]*sync.Map
	for i := range keeps {
		run, err := p.Runs().Submit(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if run = answer(t, p, run.ID); run.State != cove.RunSucceeded {
			t.Fatalf("got %+v", run.Answer)
		}
		place := <-r.in
		if place.ID() != s.ID || place.Mounted {
			t.Errorf("it ran in %s, mounted %t", place.ID(), place.Mounted)
		}
		keeps[i] = place.Keep
	}
	if keeps[0] != keeps[1] {
		t.Error("what is kept of a session is lost")
	}
	run, err := e.As(caller("eve", "rival")).Runs().Submit(t.Context(), req)
	if err == nil {
		run = answer(t, e.As(caller("eve", "rival")), run.ID)
	}
	if err != nil || run.State != cove.RunFailed {
		t.Errorf("another tenant: %+v, %v", run, err)
	}
	weak := caller("ann", "acme")
	weak.Scopes = []cove.Scope{cove.ScopeRuns}
	_, err = e.As(weak).Runs().Submit(t.Context(), req)
	wantCode(t, err, cove.Denied, "")
	req.SQL = "a hold"
	first, err := p.Runs().Submit(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	<-r.in
	second, err := p.Runs().Submit(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Runs().Delete(t.Context(), second.ID); err != nil { // it waits for its turn
		t.Error(err)
	}
	r.leave <- struct{}{}
	answer(t, p, first.ID)
}

// TestRunsAreForgotten: after a while, and when there are many.
func TestRunsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e, err := w.tryOpen(func(c *engine.Config) {
			c.Runners = map[string]cove.Runner{"": fake.Runner{}}
			c.MaxRuns, c.KeepRuns = 2, time.Hour
		})
		if err != nil {
			t.Fatal(err)
		}
		defer w.shut(e, w.provider)
		p := e.As(boss)
		for range 4 {
			answer(t, p, submit(t, p, "SELECT 1"))
		}
		count := func() (n int) {
			for _, err := range p.Runs().List(t.Context(), cove.RunFilter{}) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			return n
		}
		<-time.After(2 * time.Minute)
		if n := count(); n != 2 {
			t.Errorf("%d runs are left of four", n)
		}
		<-time.After(time.Hour)
		if n := count(); n != 0 {
			t.Errorf("%d runs are left after their time", n)
		}
	})
}

// TestATenantTakesNotAllRuns: whoever submits as many runs as it may leaves room for
// others.
func TestATenantTakesNotAllRuns(t *testing.T) {
	e := newWorld(t).open()
	greedy, other := e.As(caller("ann", "acme")), e.As(caller("bob", "zeta"))
	var err error
	n := 0
	for ; err == nil && n < 100; n++ {
		_, err = greedy.Runs().Submit(t.Context(), cove.RunRequest{Type: cove.QuerySQL, SQL: "hang"})
	}
	wantCode(t, err, cove.Exhausted, "")
	if n != 33 {
		t.Errorf("the tenant has its end at run %d", n)
	}
	if run := answer(t, other, submit(t, other, "SELECT 1")); run.State != cove.RunSucceeded {
		t.Errorf("another tenant's run: %+v", run.Answer)
	}
}
