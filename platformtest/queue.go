package platformtest

import (
	"context"
	"slices"
	"testing"

	"github.com/cove-sandbox/cove"
)

func queueCases() []testCase {
	return []testCase{
		{"wait", waitForRoom},
		{"stop_makes_room", stopMakesRoom},
		{"fair", fairQueue},
		{"full", queueFull},
		{"caller_leaves", callerLeavesQueue},
		{"same_key_waits_together", sameKeyWaits},
	}
}

// waiter is a caller that waits for room.
type waiter struct {
	positions chan int
	done      <-chan answer[*cove.Session]
}

// enqueue opens a session in another goroutine and returns when it has a place
// in the queue.
func (r *rig) enqueue(ctx context.Context, p cove.Platform, spec cove.Spec) waiter {
	r.t.Helper()
	w := waiter{positions: make(chan int, 1000)}
	w.done = async(func() (*cove.Session, error) {
		return p.Sessions().Open(ctx, cove.OpenRequest{
			Spec: spec, OnFull: cove.WaitWhenFull, OnQueue: func(position int) { w.positions <- position },
		})
	})
	select {
	case n := <-w.positions:
		if n < 1 {
			r.t.Fatalf("a caller has place %d in the queue", n)
		}
		w.positions <- n
	case a := <-w.done:
		r.t.Fatalf("a caller did not wait: %+v, %v", a.value, a.err)
	case <-r.ctx.Done():
		r.t.Fatal("a caller got no place in the queue")
	}
	return w
}

// told waits until a caller learns that it has a place.
func (r *rig) told(w waiter, place int) {
	r.t.Helper()
	for receive(r, w.positions, "a place in the queue") != place {
	}
}

func (r *rig) admitted(w waiter) *cove.Session {
	r.t.Helper()
	a := receive(r, w.done, "the session of a caller that waited")
	r.must(a.err, "wait for room")
	if a.value.State != cove.Running {
		r.t.Fatalf("a session that waited for room is %s", a.value.State)
	}
	return a.value
}

func (r *rig) queued() int {
	r.t.Helper()
	stats, err := r.admin().Admin().Stats(r.ctx)
	r.must(err, "stats")
	return stats.Queued
}

func waitForRoom(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 1})
	p := r.user("acme")
	held := r.session(p, cove.Spec{})
	one := r.enqueue(r.ctx, p, cove.Spec{})
	r.told(one, 1)
	two := r.enqueue(r.ctx, p, cove.Spec{})
	r.told(two, 2)
	if n := r.queued(); n != 2 {
		t.Errorf("%d callers wait, want 2", n)
	}
	r.closeNow(p, held.ID)
	first := r.admitted(one)
	r.told(two, 1)
	r.closeNow(p, first.ID)
	r.admitted(two)
	if n := r.queued(); n != 0 {
		t.Errorf("%d callers wait, want none", n)
	}
}

func stopMakesRoom(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 1})
	p := r.user("acme")
	held := r.session(p, cove.Spec{})
	w := r.enqueue(r.ctx, p, cove.Spec{})
	r.stop(p, held.ID)
	r.admitted(w)
}

// fairQueue: a tenant with many callers in the queue does not keep out another
// that came later with one.
func fairQueue(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 1})
	held := r.session(r.user("acme"), cove.Spec{})
	type place struct {
		tenant string
		a      answer[*cove.Session]
	}
	came := make(chan place, 5)
	for _, tenant := range []string{"acme", "acme", "acme", "acme", "globex"} {
		w := r.enqueue(r.ctx, r.user(tenant), cove.Spec{})
		go func() { came <- place{tenant, <-w.done} }()
	}
	r.closeNow(r.user("acme"), held.ID)
	var order []string
	for range 5 {
		next := receive(r, came, "the next session")
		r.must(next.a.err, "wait for room")
		order = append(order, next.tenant)
		r.closeNow(r.user(next.tenant), next.a.value.ID)
	}
	if at := slices.Index(order, "globex"); at > 1 {
		t.Errorf("four callers of one tenant and one of another got room in the order %v", order)
	}
}

func queueFull(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 1, QueueLength: 1})
	p := r.user("acme")
	held := r.session(p, cove.Spec{})
	w := r.enqueue(r.ctx, p, cove.Spec{})
	for _, tenant := range []string{"acme", "globex"} {
		_, err := r.user(tenant).Sessions().Open(r.ctx, cove.OpenRequest{OnFull: cove.WaitWhenFull})
		wantReason(t, err, cove.Exhausted, cove.ReasonQueueFull)
		if number(err, "retry_after") <= 0 {
			t.Errorf("the error does not say when to come back: %v", err)
		}
	}
	r.closeNow(p, held.ID)
	r.admitted(w)
}

func callerLeavesQueue(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 1, QueueLength: 2})
	p := r.user("acme")
	held := r.session(p, cove.Spec{})
	ctx, leave := context.WithCancel(r.ctx)
	gone := r.enqueue(ctx, p, cove.Spec{User: "gone"})
	stays := r.enqueue(r.ctx, p, cove.Spec{User: "stays"})
	leave()
	a := receive(r, gone.done, "the answer of a caller that left")
	wantCode(t, a.err, cove.Canceled)
	r.told(stays, 1)
	r.eventually("the caller that left is out of the queue", func() bool { return r.queued() == 1 })
	r.closeNow(p, held.ID)
	got := r.admitted(stays)
	same(t, "the sessions", ids(all(r, p.Sessions().List(r.ctx, cove.SessionFilter{}))), []cove.ID{got.ID})
}

// sameKeyWaits: two callers of one key that wait get one session.
func sameKeyWaits(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 1})
	p := r.user("acme")
	held := r.session(p, cove.Spec{})
	one := r.enqueue(r.ctx, p, cove.Spec{User: "u"})
	two := async(func() (*cove.Session, error) {
		return p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: cove.Spec{User: "u"}, OnFull: cove.WaitWhenFull})
	})
	r.closeNow(p, held.ID)
	a := receive(r, two, "the session of the second caller")
	r.must(a.err, "wait for room")
	if got := r.admitted(one); got.ID != a.value.ID {
		t.Error("two callers of one key that waited got two sessions")
	}
}
