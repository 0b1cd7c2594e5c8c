package redis_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/store/redis"
	"github.com/cove-sandbox/cove/store/redis/redistest"
)

// TestSettling has a directory that lost all, and one that was only away: until
// nodes had the time to come back, nobody is told that something is gone.
func TestSettling(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*redistest.Server){
		"flushed":        func(s *redistest.Server) { s.Flush() },
		"restarted":      func(s *redistest.Server) { s.Restart(true) },
		"restarted anew": func(s *redistest.Server) { s.Restart(false) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			a, b := c.join("a"), c.join("b")
			first := beat(t, a)
			same(t, first.Settling, 0)
			ok(t, b.PutSession(t.Context(), session("theirs", "b", "ann")))
			lose(c.server)
			c.expire("b")

			// Even before the first beat.
			err := errOf(a.Locate(t.Context(), "unknown"))
			fails(t, err, cove.Unavailable, cove.ReasonNoDirectory)
			second := beat(t, a)
			if second.Epoch == first.Epoch || second.Settling <= 0 || second.Settling > longLease {
				t.Errorf("a strange pulse: %+v after %+v", second, first)
			}
			same(t, second.Origin == first.Origin && first.Origin != "", name == "restarted")
			err = errOf(a.Locate(t.Context(), "unknown"))
			fails(t, err, cove.Unavailable, cove.ReasonNoDirectory)
			if wait, isInt := detail(t, err, "retry_after").(int); !isInt || wait < 1 || wait > 600 {
				t.Errorf("retry after %v", wait)
			}
			fails(t, errOf(a.Holder(t.Context(), "acme", "bob", "")), cove.Unavailable, cove.ReasonNoDirectory)
			n, err := a.Sweep(t.Context())
			ok(t, err)
			same(t, n, 0)
			if name == "restarted" { // it is there, and its node may be back
				rec, err := a.Locate(t.Context(), "theirs")
				ok(t, err)
				same(t, rec.State, cove.Running)
				fails(t, a.PutSession(t.Context(), session("mine", "a", "ann")), cove.Conflict, cove.ReasonElsewhere)
			}
			same(t, beat(t, b).Epoch, second.Epoch)
			rec := session("theirs", "b", "ann")
			rec.Version = 7
			ok(t, b.Restore(t.Context(), rec))
			got, err := a.Holder(t.Context(), "acme", "ann", "")
			ok(t, err)
			same(t, fmt.Sprint(got.ID, got.Version), "theirs8")
			same(t, rec.Version, 8)
			same(t, c.counted("tenant:acme")[0], "1")
		})
	}
}

// TestBoundsWhileSettling has a directory lose all: until nodes had the time to say what
// they have, nothing gets a sandbox, and what there is goes on.
func TestBoundsWhileSettling(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.join("a"), c.join("b")
	theirs, mine := session("theirs", "b", ""), session("mine", "a", "")
	ok(t, b.PutSession(t.Context(), theirs))
	ok(t, a.PutSession(t.Context(), mine))
	c.server.Flush()
	beat(t, a)
	ok(t, a.PutTenant(t.Context(), &cove.Tenant{Name: "acme", Quota: cove.Bounds{Sessions: 2}}))
	ok(t, a.Restore(t.Context(), mine))
	err := a.PutSession(t.Context(), session("more", "a", "")) // the other node has not beaten yet
	fails(t, err, cove.Unavailable, cove.ReasonNoDirectory)
	if wait, isInt := detail(t, err, "retry_after").(int); !isInt || wait < 1 {
		t.Errorf("retry after %v", wait)
	}
	mine.State = cove.Paused
	ok(t, a.PutSession(t.Context(), mine))
	mine.State = cove.Stopped
	ok(t, a.PutSession(t.Context(), mine))
	mine.State = cove.Running
	fails(t, a.PutSession(t.Context(), mine), cove.Unavailable, cove.ReasonNoDirectory)
	beat(t, b)
	ok(t, b.Restore(t.Context(), theirs))
	same(t, c.counted("tenant:acme")[0], "1")
}

// TestTokensAreNeverGivenTwice, not even by a server that forgot them.
func TestTokensAreNeverGivenTwice(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a := c.join("a")
	last := beat(t, a).Token
	for range 3 {
		c.server.Flush()
		fails(t, a.PutTenant(t.Context(), &cove.Tenant{Name: "x"}), cove.Unavailable, cove.ReasonFenced)
		next := beat(t, a).Token
		if next <= last {
			t.Fatalf("token %d after %d", next, last)
		}
		last = next
	}
}

func TestRestore(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.join("a"), c.join("b")
	rec := session("s", "a", "ann")
	ok(t, a.Restore(t.Context(), rec)) // absent
	same(t, rec.Version, 1)
	stale := *rec
	for range 3 {
		ok(t, a.PutSession(t.Context(), rec))
	}
	stale.State = cove.Paused
	ok(t, a.Restore(t.Context(), &stale)) // what is here counts
	same(t, stale.Version, 5)
	got, err := a.GetSession(t.Context(), "s")
	ok(t, err)
	same(t, got.State, cove.Paused)

	fails(t, b.Restore(t.Context(), session("s", "b", "ann")), cove.NotFound, cove.ReasonNodeLost)
	fails(t, b.Restore(t.Context(), session("s", "a", "ann")), cove.Conflict, cove.ReasonElsewhere)
	err = b.Restore(t.Context(), session("other", "b", "ann"))
	fails(t, err, cove.Conflict, cove.ReasonElsewhere)
	same(t, detail(t, err, "session_id"), any("s"))

	stale.State, stale.Cause = cove.Ended, cove.ReasonSessionClosed
	ok(t, a.PutSession(t.Context(), &stale))
	fails(t, a.Restore(t.Context(), rec), cove.NotFound, cove.ReasonSessionClosed)
	ok(t, b.Restore(t.Context(), session("other", "b", "ann")))
	moved := session("moved", "", "")
	moved.State = cove.Stopped
	ok(t, a.PutSession(t.Context(), moved))
	fails(t, a.Restore(t.Context(), session("moved", "a", "")), cove.NotFound, cove.ReasonNodeLost)

	// A quota does not keep out what is there already.
	ok(t, a.PutTenant(t.Context(), &cove.Tenant{Name: "acme", Quota: cove.Bounds{Sessions: 1}}))
	fails(t, a.PutSession(t.Context(), session("more", "a", "")), cove.Exhausted, cove.ReasonTenantQuota)
	ok(t, a.Restore(t.Context(), session("more", "a", "")))
	same(t, c.counted("tenant:acme")[0], "2")

	// The session that has the key now is one of a node that is gone.
	c.expire("b")
	ok(t, a.Restore(t.Context(), session("third", "a", "ann")))
	lost, err := a.GetSession(t.Context(), "other")
	ok(t, err)
	same(t, lost.Cause, cove.ReasonNodeLost)
}

// TestForgottenAdoption has a directory lose that a node took up a session that was
// nobody's. Only who has a sandbox of it, and newer than what is known, gets it back.
func TestForgottenAdoption(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.join("a"), c.join("b")
	nobodys := session("s", "", "ann")
	nobodys.State = cove.Stopped
	for range 3 {
		ok(t, a.PutSession(t.Context(), nobodys))
	}
	same(t, nobodys.Version, 3)
	mine := session("s", "b", "ann")
	mine.Version = 3
	fails(t, b.Restore(t.Context(), mine), cove.NotFound, cove.ReasonNodeLost) // somebody made it nobody's since
	mine.Version, mine.State = 5, cove.Stopped
	fails(t, b.Restore(t.Context(), mine), cove.NotFound, cove.ReasonNodeLost) // it has no sandbox
	mine.State = cove.Running
	ok(t, b.Restore(t.Context(), mine))
	same(t, mine.Version, 6)
	got, err := a.Locate(t.Context(), "s")
	ok(t, err)
	same(t, got.Node, "b")

	other := session("s", "a", "ann")
	other.Version = 9
	fails(t, a.Restore(t.Context(), other), cove.NotFound, cove.ReasonNodeLost) // who has it lives
	c.expire("b")
	ok(t, a.Restore(t.Context(), other))
	beat(t, b)
	fails(t, b.Restore(t.Context(), mine), cove.NotFound, cove.ReasonNodeLost)
	same(t, c.counted("tenant:acme")[0], "1")
}

// TestLossIsForEver has a node bring back sessions that others were told are lost.
func TestLossIsForEver(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.join("a"), c.join("b")
	early, late := session("early", "b", "ann"), session("late", "b", "bob")
	ok(t, b.PutSession(t.Context(), early))
	ok(t, b.PutSession(t.Context(), late))
	c.expire("b")
	for _, id := range []cove.ID{"early", "late"} {
		rec, err := a.Locate(t.Context(), id)
		ok(t, err)
		same(t, rec.State, cove.Ended)
	}
	for range 2 {
		c.server.Flush()
		beat(t, b)
		ok(t, b.Restore(t.Context(), early)) // before anybody could say that it is lost
		beat(t, a)
		for _, id := range []cove.ID{"early", "late"} {
			rec, err := a.GetSession(t.Context(), id)
			ok(t, err)
			same(t, fmt.Sprint(rec.State, rec.Cause, rec.Tenant), "ended"+cove.ReasonNodeLost+"acme")
		}
		fails(t, b.PutSession(t.Context(), early), cove.Conflict, "")
		fails(t, b.Restore(t.Context(), early), cove.NotFound, cove.ReasonNodeLost)
		fails(t, b.Restore(t.Context(), late), cove.NotFound, cove.ReasonNodeLost)
		same(t, c.counted("tenant:acme"), [2]string{})
	}
}

// TestFailover has a Sentinel make the replica the master.
func TestFailover(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t)
	a := open(t, redis.Config{URL: set.URL(), Node: "a", Instance: "x", Lease: longLease})
	first := beat(t, a)
	rec := session("s", "a", "ann")
	rec.State = cove.Stopped // bounds are not known yet
	ok(t, a.PutSession(t.Context(), rec))
	set.Failover()
	for deadline := time.Now().Add(30 * time.Second); ; <-time.After(20 * time.Millisecond) {
		p, err := a.Beat(t.Context(), cove.Node{})
		if err == nil {
			if p.Epoch == first.Epoch || p.Token != first.Token {
				t.Errorf("%+v after %+v", p, first)
			}
			break
		}
		fails(t, err, cove.Unavailable, cove.ReasonNoDirectory)
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	rec.LastActivity = rec.LastActivity.Add(time.Second)
	ok(t, a.PutSession(t.Context(), rec))
}

// TestTwoMasters refuses a master that would go on without its replica.
func TestTwoMasters(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t)
	c := redis.Config{URL: set.URL(), Node: "a", Instance: "x"}
	open(t, c)
	for _, wrong := range [][]string{
		{"min-replicas-to-write", "0"}, {"min-replicas-to-write", "1", "min-replicas-max-lag", "0"}, {"min-replicas-max-lag", "6"},
	} {
		set.Master.Do(append([]string{"CONFIG", "SET"}, wrong...)...)
		_, err := redis.Open(t.Context(), c)
		fails(t, err, cove.Invalid, cove.ReasonConfiguration)
		if !strings.Contains(cove.MessageOf(err), "min-replicas-to-write 1 and min-replicas-max-lag 5") {
			t.Errorf("%v says nothing of what to set", err)
		}
	}
	open(t, redis.Config{URL: set.URL()}) // no node, no lease
	set.Master.Do("CONFIG", "SET", "min-replicas-max-lag", "1")
	open(t, c)

	// A master whose replica is gone takes no lease.
	a := open(t, redis.Config{URL: set.URL(), Node: "b", Instance: "y"})
	set.Sentinel.Stop()
	set.Replica.Stop()
	for deadline := time.Now().Add(30 * time.Second); ; <-time.After(50 * time.Millisecond) {
		_, err := a.Beat(t.Context(), cove.Node{})
		if err != nil {
			fails(t, err, cove.Unavailable, cove.ReasonNoDirectory)
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a master without its replica takes writes")
		}
	}
}

// TestMovedSlot gives the slot of a cluster to another server, which has nothing.
func TestMovedSlot(t *testing.T) {
	t.Parallel()
	set := redistest.StartCluster(t)
	a := open(t, redis.Config{URL: set.URL(), Node: "a", Instance: "x", Lease: longLease})
	first := beat(t, a)
	rec := session("s", "a", "ann")
	ok(t, a.Restore(t.Context(), rec))
	fails(t, errOf(a.Locate(t.Context(), "unknown")), cove.Unavailable, cove.ReasonNoDirectory)
	ctx, cancel := context.WithCancel(t.Context())
	told := &news{}
	done := make(chan error, 1)
	go func() { done <- a.Follow(ctx, told.add) }()
	told.await(t, cove.Notice{}, 0)
	ok(t, a.PutTenant(t.Context(), &cove.Tenant{Name: "acme"}))
	told.await(t, cove.Notice{Tenant: "acme"}, 0)
	cancel()
	fails(t, <-done, cove.Canceled, "")
	unlock, err := a.Lock(t.Context(), "l")
	ok(t, err)
	unlock()

	slot := set.Nodes[0].Do("CLUSTER", "KEYSLOT", "{cove}:")
	var owner, other *redistest.Server
	for _, n := range set.Nodes {
		if n.Do("CLUSTER", "COUNTKEYSINSLOT", slot) == "0" {
			other = n
		} else {
			owner = n
		}
	}
	owner.Flush()
	for _, n := range []*redistest.Server{other, owner, set.Nodes[0], set.Nodes[1], set.Nodes[2]} {
		n.Do("CLUSTER", "SETSLOT", slot, "NODE", other.Do("CLUSTER", "MYID"))
	}
	fails(t, a.PutSession(t.Context(), rec), cove.Unavailable, cove.ReasonFenced)
	second := beat(t, a)
	if second.Epoch == first.Epoch || second.Token <= first.Token {
		t.Errorf("%+v after %+v", second, first)
	}
	ok(t, a.Restore(t.Context(), rec))
}
