package redis_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/store/redis"
	"github.com/cove-sandbox/cove/store/redis/redistest"
)

// cluster is a server with nodes that share it. Leases are long, so that a slow
// machine loses none; tests take them away.
type cluster struct {
	t      *testing.T
	server *redistest.Server
}

const longLease = 10 * time.Minute

// newCluster starts a directory that has settled: the lease of who began it was
// short.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, server: redistest.Start(t)}
	c.found()
	return c
}

func (c *cluster) found() {
	c.t.Helper()
	founder := open(c.t, redis.Config{URL: c.server.URL(), Node: "founder", Instance: "x", Lease: 20 * time.Millisecond})
	for beat(c.t, founder).Settling > 0 {
		<-time.After(time.Millisecond)
	}
	c.server.Do("DEL", "{cove}:lease:founder", "{cove}:node:founder")
	c.server.Do("ZREM", "{cove}:nodes", "founder")
}

// join opens the directory for a node and takes its lease.
func (c *cluster) join(name string) *redis.Store {
	c.t.Helper()
	s := c.open(name, name+" home")
	beat(c.t, s)
	return s
}

func (c *cluster) open(name, instance string) *redis.Store {
	c.t.Helper()
	return open(c.t, redis.Config{URL: c.server.URL(), Node: name, Instance: instance, Lease: longLease})
}

// expire takes the lease of a node away, as time does.
func (c *cluster) expire(name string) { c.server.Do("DEL", "{cove}:lease:"+name) }

func (c *cluster) digest() string { return c.server.Do("DEBUG", "DIGEST") }

// counted returns the counters of a tenant or an owner.
func (c *cluster) counted(of string) [2]string {
	return [2]string{c.server.Do("HGET", "{cove}:held:"+of, "sessions"), c.server.Do("HGET", "{cove}:held:"+of, "memory")}
}

func beat(t *testing.T, s *redis.Store) cove.Pulse {
	t.Helper()
	p, err := s.Beat(t.Context(), cove.Node{Address: "127.0.0.1:1", Version: "test"})
	ok(t, err)
	return p
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// fails wants a code and a reason, "" for none.
func fails(t *testing.T, err error, code cove.Code, reason string) {
	t.Helper()
	if cove.CodeOf(err) != code || cove.ReasonOf(err) != reason || cove.MessageOf(err) == "" {
		t.Fatalf("got %v (%s), want %s (%s)", err, cove.ReasonOf(err), code, reason)
	}
}

func detail(t *testing.T, err error, key string) any {
	t.Helper()
	e, ours := errors.AsType[*cove.Error](err)
	if !ours {
		t.Fatalf("%v is not ours", err)
	}
	return e.Details[key]
}

// session is one with a sandbox on a node.
func session(id cove.ID, node, user string) *cove.Session {
	s := &cove.Session{ID: id, Tenant: "acme", Owner: "key-1", State: cove.Running, Node: node, Memory: cove.GiB}
	s.Spec.User, s.Spec.Env = user, map[string]string{"A": "1"}
	return s
}

// together runs calls that start at the same moment.
func together(n int, call func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = call(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

func TestLease(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a := c.open("a", "home 1")
	fails(t, a.PutSession(t.Context(), session("s", "a", "")), cove.Unavailable, cove.ReasonFenced) // no lease yet
	first := beat(t, a)
	if first.Token == 0 || first.Epoch == "" || first.Cordoned {
		t.Errorf("a strange pulse: %+v", first)
	}
	same(t, beat(t, a), first)

	other := c.open("a", "home 2")
	_, err := other.Beat(t.Context(), cove.Node{})
	fails(t, err, cove.Conflict, "")
	if !strings.Contains(cove.RemedyOf(err), "node name") {
		t.Errorf("no remedy in %v", err)
	}
	again := c.open("a", "home 1") // after a restart
	second := beat(t, again)
	if second.Token <= first.Token {
		t.Errorf("token %d after %d", second.Token, first.Token)
	}
	fails(t, a.PutSession(t.Context(), session("s", "a", "")), cove.Unavailable, cove.ReasonFenced)
	ok(t, again.PutSession(t.Context(), session("s", "a", "")))

	c.expire("a")
	if third := beat(t, again); third.Token <= second.Token {
		t.Errorf("token %d after %d", third.Token, second.Token)
	}
	ok(t, again.Leave(t.Context(), 0))
	ok(t, errOf(other.Beat(t.Context(), cove.Node{})))

	plain := open(t, redis.Config{URL: c.server.URL()})
	fails(t, errOf(plain.Beat(t.Context(), cove.Node{})), cove.Unsupported, "")
	ok(t, plain.PutSession(t.Context(), session("p", "elsewhere", "")))
}

func errOf[T any](_ T, err error) error { return err }

// TestLeaseRunsOut waits for the server to end a lease by its own clock.
func TestLeaseRunsOut(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	b := c.join("b")
	a := open(t, redis.Config{URL: c.server.URL(), Node: "a", Instance: "x", Lease: 500 * time.Millisecond})
	rec := session("s", "a", "ann")
	for { // until a machine that is slow now got this far within the lease
		beat(t, a)
		err := a.PutSession(t.Context(), rec)
		if err == nil {
			break
		}
		fails(t, err, cove.Unavailable, cove.ReasonFenced)
	}
	for c.server.Do("EXISTS", "{cove}:lease:a") == "1" {
		<-time.After(5 * time.Millisecond)
	}
	lost, err := b.Locate(t.Context(), "s")
	ok(t, err)
	same(t, lost.State, cove.Ended)
	same(t, lost.Cause, cove.ReasonNodeLost)
	if d := time.Since(lost.EndedAt); d < -time.Minute || d > time.Minute {
		t.Errorf("ended at %s", lost.EndedAt)
	}
	mine := session("t", "b", "ann")
	ok(t, b.PutSession(t.Context(), mine))
	before := c.digest()
	fails(t, a.PutSession(t.Context(), rec), cove.Unavailable, cove.ReasonFenced) // it was paused, and knows of nothing
	same(t, c.digest(), before)
	for range 20 {
		beat(t, a)
		if err = a.PutSession(t.Context(), rec); cove.ReasonOf(err) != cove.ReasonFenced {
			break
		}
	}
	fails(t, err, cove.Conflict, "") // another version
}

// TestFenced has a node without its lease write all that there is to write.
func TestFenced(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a := c.join("a")
	ok(t, a.PutSession(t.Context(), session("s", "a", "ann")))
	ok(t, a.PutSession(t.Context(), &cove.Session{ID: "n", State: cove.Stopped}))
	rec, err := a.GetSession(t.Context(), "s")
	ok(t, err)
	c.expire("a")
	ctx, before := t.Context(), c.digest()
	for name, err := range map[string]error{
		"PutSession": a.PutSession(ctx, rec), "DeleteSession": a.DeleteSession(ctx, "s"),
		"PutKey": a.PutKey(ctx, &cove.Key{ID: "k", Hash: []byte("h")}), "PutTenant": a.PutTenant(ctx, &cove.Tenant{Name: "t"}),
		"AddUsage":    errOf(a.AddUsage(ctx, "t", cove.Consumption{CPU: 1})),
		"PutSnapshot": a.PutSnapshot(ctx, &cove.Snapshot{ID: "p"}), "DeleteSnapshot": a.DeleteSnapshot(ctx, "p"),
		"PutVolume": a.PutVolume(ctx, &cove.SavedVolume{ID: "p"}), "DeleteVolume": a.DeleteVolume(ctx, "p"),
		"PutRun": a.PutRun(ctx, &cove.Run{ID: "p"}), "DeleteRun": a.DeleteRun(ctx, "p"), "TrimRuns": errOf(a.TrimRuns(ctx, time.Now(), 1)),
		"PutMessage": a.PutMessage(ctx, &cove.Message{ID: "m"}), "DeleteMessages": a.DeleteMessages(ctx, "t", "o", "h"),
		"TrimMessages": errOf(a.TrimMessages(ctx, time.Now())),
		"TakeClaim":    errOf(a.TakeClaim(ctx, cove.Claim{Tenant: "t", Key: "k", ExpiresAt: time.Now().Add(time.Hour)}, time.Now())),
		"SetClaim":     a.SetClaim(ctx, "t", "k", "r"), "DropClaim": a.DropClaim(ctx, "t", "k"),
		"Leave": a.Leave(ctx, time.Hour), "Cordon": a.Cordon(ctx, "a", true), "Adopt": errOf(a.Adopt(ctx, "n")), "Restore": a.Restore(ctx, rec),
		"Locate": errOf(a.Locate(ctx, "s")), "Sweep": errOf(a.Sweep(ctx)), "Lock": lockErr(a.Lock(ctx, "l")), "SpendOnce": errOf(a.SpendOnce(ctx, "n", time.Hour)),
	} {
		t.Log(name)
		fails(t, err, cove.Unavailable, cove.ReasonFenced)
		same(t, detail(t, err, "retry_after"), any(2))
	}
	same(t, c.digest(), before)
	_, err = a.GetSession(ctx, "s") // reading does no harm
	ok(t, err)
}

func lockErr(_ func(), err error) error { return err }

func TestMembers(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	nodes := map[string]*redis.Store{}
	for _, name := range []string{"ready", "cordoned", "away", "gone"} {
		nodes[name] = c.join(name)
	}
	states := func() string {
		t.Helper()
		all, err := nodes["ready"].Members(t.Context())
		ok(t, err)
		var out []string
		for _, n := range all {
			out = append(out, n.ID+"="+string(n.State))
			if n.Address == "" || n.SeenAt.IsZero() {
				t.Errorf("%+v lacks something", n)
			}
		}
		return strings.Join(out, " ")
	}
	same(t, states(), "away=ready cordoned=ready gone=ready ready=ready")
	ok(t, nodes["ready"].Cordon(t.Context(), "cordoned", true))
	ok(t, nodes["away"].Leave(t.Context(), time.Hour))
	ok(t, nodes["gone"].Leave(t.Context(), 0))
	same(t, states(), "away=away cordoned=cordoned gone=gone ready=ready")
	if !beat(t, nodes["cordoned"]).Cordoned {
		t.Error("it is not told that it is cordoned")
	}
	same(t, states(), "away=away cordoned=cordoned gone=gone ready=ready")
	ok(t, nodes["away"].PutTenant(t.Context(), &cove.Tenant{Name: "x"})) // it has its lease until the grace is over
	beat(t, nodes["away"])
	beat(t, nodes["gone"])
	ok(t, nodes["ready"].Cordon(t.Context(), "cordoned", false))
	same(t, states(), "away=ready cordoned=ready gone=ready ready=ready")
	fails(t, nodes["ready"].Cordon(t.Context(), "nobody", true), cove.NotFound, "")

	// One that has its lease and does not answer yet says so itself.
	_, err := nodes["away"].Beat(t.Context(), cove.Node{Address: "x", State: cove.NodeAway})
	ok(t, err)
	same(t, states(), "away=away cordoned=ready gone=ready ready=ready")

	// A directory that lost all learns from the node itself that it is cordoned.
	c.server.Flush()
	p, err := nodes["ready"].Beat(t.Context(), cove.Node{Address: "x", State: cove.NodeCordoned})
	ok(t, err)
	same(t, p.Cordoned, true)
	same(t, states(), "ready=cordoned")
}

func TestNodesWriteTheirOwn(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.join("a"), c.join("b")
	rec := session("s", "a", "")
	ok(t, a.PutSession(t.Context(), rec))
	err := b.PutSession(t.Context(), rec)
	fails(t, err, cove.Conflict, cove.ReasonElsewhere)
	same(t, fmt.Sprint(detail(t, err, "node"), detail(t, err, "session_id")), "as")
	stolen := *rec
	stolen.Node = "b"
	fails(t, b.PutSession(t.Context(), &stolen), cove.Conflict, cove.ReasonElsewhere)
	fails(t, b.DeleteSession(t.Context(), "s"), cove.Conflict, cove.ReasonElsewhere)
	fails(t, errOf(b.Adopt(t.Context(), "s")), cove.Conflict, cove.ReasonElsewhere)
	rec.State = cove.Ended
	ok(t, a.PutSession(t.Context(), rec))
	ok(t, b.DeleteSession(t.Context(), "s"))
	fails(t, errOf(b.Adopt(t.Context(), "s")), cove.NotFound, cove.ReasonNoSession)
}

func TestAdopt(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	nodes := []*redis.Store{c.join("a"), c.join("b")}
	for round := range 10 {
		id := cove.ID(fmt.Sprint(round))
		rec := session(id, "", fmt.Sprint(round))
		rec.State = cove.Stopped
		ok(t, nodes[0].PutSession(t.Context(), rec))
		won := 0
		for i, err := range together(16, func(i int) error { return errOf(nodes[i%2].Adopt(t.Context(), id)) }) {
			if err == nil {
				won++
				got, err := nodes[0].GetSession(t.Context(), id)
				ok(t, err)
				same(t, got.Node, []string{"a", "b"}[i%2])
				continue
			}
			same(t, cove.CodeOf(err), cove.Conflict)
		}
		same(t, won, 1)
	}
	same(t, c.counted("tenant:acme"), [2]string{})
}
