package redis_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/store/redis"
)

func TestLock(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	nodes := []*redis.Store{c.join("a"), c.join("b")}
	inside, times := atomic.Int64{}, atomic.Int64{}
	for _, err := range together(8, func(i int) error {
		for range 5 {
			unlock, err := nodes[i%2].Lock(t.Context(), "the lock")
			if err != nil {
				return err
			}
			if n := inside.Add(1); n != 1 {
				return fmt.Errorf("%d have it", n)
			}
			times.Add(1)
			inside.Add(-1)
			unlock()
			unlock()
		}
		return nil
	}) {
		ok(t, err)
	}
	same(t, times.Load(), 40)

	unlock, err := nodes[0].Lock(t.Context(), "held")
	ok(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	fails(t, lockErr(nodes[1].Lock(ctx, "held")), cove.Timeout, "")
	other, err := nodes[1].Lock(t.Context(), "another")
	ok(t, err)
	other()

	c.expire("a") // what it holds, nobody holds
	theirs, err := nodes[1].Lock(t.Context(), "held")
	ok(t, err)
	unlock() // of what is another's now
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	beat(t, nodes[0])
	fails(t, lockErr(nodes[0].Lock(ctx, "held")), cove.Timeout, "")
	theirs()
	again, err := nodes[0].Lock(t.Context(), "held")
	ok(t, err)
	again()
}

// TestDeadline has callers whose time ends at any moment of a call.
func TestDeadline(t *testing.T) {
	t.Parallel()
	a := newCluster(t).join("a")
	for i := range 400 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*2*time.Microsecond)
		unlock, err := a.Lock(ctx, fmt.Sprint("l", i))
		if err != nil {
			fails(t, err, cove.Timeout, "")
		} else {
			unlock()
		}
		cancel()
	}
}

// TestLockIsRenewed holds a lock for much longer than it lasts by itself.
func TestLockIsRenewed(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := open(t, redis.Config{URL: c.server.URL(), Lease: 300 * time.Millisecond})
	unlock, err := s.Lock(t.Context(), "l")
	ok(t, err)
	c.server.Do("PEXPIRE", "{cove}:lock:l", "600000")
	for left := 600000; left > 300; <-time.After(5 * time.Millisecond) { // until it was renewed
		left, err = strconv.Atoi(c.server.Do("PTTL", "{cove}:lock:l"))
		ok(t, err)
	}
	unlock()
	same(t, c.server.Do("EXISTS", "{cove}:lock:l"), "0")
	held, err := s.Lock(t.Context(), "l")
	ok(t, err)
	ok(t, s.Close()) // lets go
	same(t, c.server.Do("EXISTS", "{cove}:lock:l"), "0")
	held()
	fails(t, lockErr(s.Lock(t.Context(), "l")), cove.Unavailable, "")
}

// news is what Follow told so far.
type news struct {
	mu  sync.Mutex
	all []cove.Notice
}

func (n *news) add(notice cove.Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, notice)
}

// await waits until something is told that was not before, and returns how much
// was told until then.
func (n *news) await(t *testing.T, want cove.Notice, after int) int {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-time.After(2 * time.Millisecond) {
		n.mu.Lock()
		for i := after; i < len(n.all); i++ {
			if n.all[i] == want {
				n.mu.Unlock()
				return i + 1
			}
		}
		n.mu.Unlock()
	}
	t.Fatalf("%+v was not told", want)
	return 0
}

func TestFollow(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.join("a"), c.join("b")
	ctx, cancel := context.WithCancel(t.Context())
	told, done := &news{}, make(chan error, 1)
	go func() { done <- a.Follow(ctx, told.add) }()
	at := told.await(t, cove.Notice{}, 0)
	key := &cove.Key{ID: "k", Tenant: "acme", Hash: []byte("h")}
	ok(t, b.PutKey(t.Context(), key))
	at = told.await(t, cove.Notice{Key: "k"}, at)
	key.RevokedAt = time.Now()
	ok(t, a.PutKey(t.Context(), key))
	at = told.await(t, cove.Notice{Key: "k", Revoked: true}, at)
	ok(t, b.PutTenant(t.Context(), &cove.Tenant{Name: "acme"}))
	at = told.await(t, cove.Notice{Tenant: "acme"}, at)
	c.server.Do("PUBLISH", "{cove}:notices", "no JSON")
	at = told.await(t, cove.Notice{}, at) // something was said, and nobody knows what

	c.server.Restart(true)
	at = told.await(t, cove.Notice{}, at)
	beat(t, b)
	ok(t, b.PutTenant(t.Context(), &cove.Tenant{Name: "globex"}))
	told.await(t, cove.Notice{Tenant: "globex"}, at)
	cancel()
	fails(t, <-done, cove.Canceled, "")

	go func() { done <- b.Follow(t.Context(), func(cove.Notice) {}) }()
	ok(t, b.Close())
	fails(t, <-done, cove.Unavailable, "")
}

func TestSpendOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	nodes := []*redis.Store{c.join("a"), c.join("b")}
	first := atomic.Int64{}
	for _, err := range together(32, func(i int) error {
		mine, err := nodes[i%2].SpendOnce(t.Context(), "ticket", time.Hour)
		if mine {
			first.Add(1)
		}
		return err
	}) {
		ok(t, err)
	}
	same(t, first.Load(), 1)
	mine, err := nodes[0].SpendOnce(t.Context(), "short", 0)
	ok(t, err)
	same(t, mine, true)
	for c.server.Do("EXISTS", "{cove}:spent:short") == "1" {
		<-time.After(time.Millisecond)
	}
	mine, err = nodes[1].SpendOnce(t.Context(), "short", time.Hour)
	ok(t, err)
	same(t, mine, true)
}

func TestClaimsOfNodes(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.join("a"), c.join("b")
	now := time.Now()
	claim := cove.Claim{Tenant: "acme", Key: "k", Digest: "d", ExpiresAt: now.Add(time.Hour)}
	held := func(s *redis.Store, node string) {
		t.Helper()
		old, err := s.TakeClaim(t.Context(), claim, now)
		ok(t, err)
		if old == nil || old.Node != node || old.Digest != "d" || !old.ExpiresAt.Equal(claim.ExpiresAt) {
			t.Fatalf("got %+v, want one of node %q", old, node)
		}
	}
	old, err := a.TakeClaim(t.Context(), claim, now)
	ok(t, err)
	same(t, old, nil)
	held(b, "a") // who lives, and may still be at it
	held(a, "")  // it is its own
	held(b, "a")
	c.expire("a")
	held(b, "") // it is for b to see what became of it
	beat(t, a)
	held(a, "b")
}
