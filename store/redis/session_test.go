package redis_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/store/redis"
)

// TestHolderRace has two nodes open a session of one user at the same moment.
func TestHolderRace(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	names := []string{"a", "b"}
	nodes := []*redis.Store{c.join("a"), c.join("b")}
	for round := range 10 {
		user := fmt.Sprint("user ", round)
		errs := together(32, func(i int) error {
			return nodes[i%2].PutSession(t.Context(), session(cove.ID(fmt.Sprintf("%d-%d", round, i)), names[i%2], user))
		})
		winner := -1
		for i, err := range errs {
			if err == nil {
				same(t, winner, -1)
				winner = i
			}
		}
		id := fmt.Sprintf("%d-%d", round, winner)
		for i, err := range errs {
			if i != winner {
				fails(t, err, cove.Conflict, cove.ReasonElsewhere)
				same(t, detail(t, err, "session_id"), any(id))
				same(t, detail(t, err, "node"), any(names[winner%2]))
			}
		}
		got, err := nodes[0].Holder(t.Context(), "acme", user, "")
		ok(t, err)
		same(t, string(got.ID), id)
	}
	same(t, c.counted("tenant:acme"), [2]string{"10", fmt.Sprint(10 * int64(cove.GiB))})
}

// TestQuotaRace has two nodes fill a tenant and a key: never one too many.
func TestQuotaRace(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	names := []string{"a", "b"}
	nodes := []*redis.Store{c.join("a"), c.join("b")}
	for _, q := range []struct {
		reason string
		tenant cove.Bounds
		key    int
		most   int
	}{
		{cove.ReasonTenantQuota, cove.Bounds{Sessions: 5}, 0, 5},
		{cove.ReasonTenantQuota, cove.Bounds{Memory: 4*cove.GiB + 1}, 0, 4},
		{cove.ReasonKeyQuota, cove.Bounds{Sessions: 30}, 3, 3},
	} {
		ok(t, nodes[0].PutTenant(t.Context(), &cove.Tenant{Name: "acme", Quota: q.tenant}))
		ok(t, nodes[1].PutKey(t.Context(), &cove.Key{ID: "key-1", Tenant: "acme", Hash: []byte("h"), Limits: cove.KeyLimit{Sessions: q.key}}))
		errs := together(40, func(i int) error {
			return nodes[i%2].PutSession(t.Context(), session(cove.ID(fmt.Sprint(i)), names[i%2], ""))
		})
		in := 0
		for i, err := range errs {
			if err == nil {
				in++
				continue
			}
			fails(t, err, cove.Exhausted, q.reason)
			same(t, detail(t, err, "retry_after"), any(5))
			if cove.RemedyOf(err) == "" {
				t.Error("no remedy")
			}
			stopped := session(cove.ID(fmt.Sprint(i)), names[i%2], "")
			stopped.State = cove.Stopped // counts for nothing
			ok(t, nodes[i%2].PutSession(t.Context(), stopped))
			stopped.State = cove.Running
			fails(t, nodes[i%2].PutSession(t.Context(), stopped), cove.Exhausted, q.reason)
		}
		same(t, in, q.most)
		same(t, c.counted("tenant:acme")[0], fmt.Sprint(q.most))
		same(t, c.counted("owner:key-1"), c.counted("tenant:acme"))
		for i, err := range errs { // what was there before a bound may stay and change
			if err == nil {
				rec, err := nodes[0].GetSession(t.Context(), cove.ID(fmt.Sprint(i)))
				ok(t, err)
				rec.State = cove.Paused
				ok(t, nodes[i%2].PutSession(t.Context(), rec))
			}
		}
		for i := range errs {
			ok(t, nodes[i%2].DeleteSession(t.Context(), cove.ID(fmt.Sprint(i))))
		}
		same(t, c.counted("tenant:acme"), [2]string{})
		same(t, c.counted("owner:key-1"), [2]string{})
	}
}

// TestCounters lets chance do everything to sessions that can be done to them,
// and compares the counters with what is there.
func TestCounters(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	names := []string{"a", "b"}
	nodes := []*redis.Store{c.join("a"), c.join("b")}
	states := cove.States()
	for step := range 400 {
		i := rand.IntN(2)
		node, id := nodes[i], cove.ID(fmt.Sprint(rand.IntN(6)))
		switch rand.IntN(8) {
		case 0:
			_ = node.DeleteSession(t.Context(), id)
		case 1:
			_, _ = node.Adopt(t.Context(), id)
		case 2:
			_ = node.Restore(t.Context(), session(id, names[i], "ann"))
		case 3:
			c.expire(names[i])
			_, err := nodes[1-i].Sweep(t.Context())
			ok(t, err)
			beat(t, node)
		default:
			rec, err := node.GetSession(t.Context(), id)
			if err != nil {
				rec = session(id, names[i], fmt.Sprint(rand.IntN(3)))
			}
			rec.State, rec.Node = states[rand.IntN(len(states))], []string{names[i], ""}[rand.IntN(2)]
			rec.Memory, rec.Owner, rec.Tenant = cove.Bytes(rand.IntN(3)), fmt.Sprint(rand.IntN(2)), []string{"acme", "globex"}[rand.IntN(2)]
			_ = node.PutSession(t.Context(), rec) // may be elsewhere
		}
		agree(t, c, nodes[0], step)
	}
}

// agree compares the counters with the sessions.
func agree(t *testing.T, c *cluster, s *redis.Store, step int) {
	t.Helper()
	sessions, memory := map[string]int{}, map[string]int64{}
	for rec, err := range s.Sessions(t.Context(), cove.SessionFilter{}) {
		ok(t, err)
		if rec.State == cove.Creating || rec.State == cove.Running || rec.State == cove.Paused {
			for _, of := range []string{"tenant:" + rec.Tenant, "owner:" + rec.Owner} {
				sessions[of]++
				memory[of] += int64(rec.Memory)
			}
		}
	}
	for _, of := range []string{"tenant:acme", "tenant:globex", "owner:0", "owner:1", "owner:key-1"} {
		got, want := c.counted(of), [2]string{}
		if n := sessions[of]; n > 0 {
			want[0], want[1] = fmt.Sprint(n), fmt.Sprint(memory[of])
			if got[1] == "" {
				got[1] = "0"
			}
		}
		if got != want {
			t.Fatalf("step %d: %s has %v, and %v is there", step, of, got, want)
		}
	}
}

func TestLost(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.join("a"), c.join("b")
	for i, rec := range []*cove.Session{
		session("located", "b", ""), session("holder", "b", "ann"), session("taken", "b", "bob"),
		session("swept 1", "b", ""), session("swept 2", "b", "carol"),
	} {
		if i%2 == 0 {
			rec.State = cove.Stopped // its files are on the node
		}
		ok(t, b.PutSession(t.Context(), rec))
	}
	nobody := session("nobody", "", "dan")
	nobody.State = cove.Stopped
	ok(t, b.PutSession(t.Context(), nobody))
	n, err := a.Sweep(t.Context())
	ok(t, err)
	same(t, n, 0)

	ok(t, b.Leave(t.Context(), 0))
	lost, err := a.Locate(t.Context(), "located")
	ok(t, err)
	same(t, fmt.Sprint(lost.State, lost.Cause, lost.Node, lost.Spec.Env), "ended"+cove.ReasonNodeLost+"bmap[A:1]")
	again, err := a.GetSession(t.Context(), "located")
	ok(t, err)
	same(t, again.EndedAt.Equal(lost.EndedAt) && again.Version == lost.Version, true)
	_, err = a.Holder(t.Context(), "acme", "ann", "")
	fails(t, err, cove.NotFound, cove.ReasonNoSession)
	ok(t, a.PutSession(t.Context(), session("new", "a", "bob")))
	taken, err := a.GetSession(t.Context(), "taken")
	ok(t, err)
	same(t, taken.Cause, cove.ReasonNodeLost)
	n, err = a.Sweep(t.Context())
	ok(t, err)
	same(t, n, 2)
	n, err = a.Sweep(t.Context())
	ok(t, err)
	same(t, n, 0)
	for _, id := range []cove.ID{"nobody", "new"} {
		rec, err := a.Locate(t.Context(), id)
		ok(t, err)
		same(t, rec.State == cove.Ended, false)
	}
	same(t, c.counted("tenant:acme")[0], "1")
	beat(t, b)
	fails(t, errOf(b.Holder(t.Context(), "acme", "", "")), cove.NotFound, cove.ReasonNoSession)
	fails(t, errOf(b.Locate(t.Context(), "unknown")), cove.NotFound, cove.ReasonNoSession)
}

// TestSweepMany ends more than one script would.
func TestSweepMany(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.join("a"), c.join("b")
	for i := range 100 {
		ok(t, b.PutSession(t.Context(), session(cove.ID(fmt.Sprint(i)), "b", "")))
	}
	c.expire("b")
	sum := int64(0)
	for _, err := range together(4, func(int) error { return errOf(a.Sweep(t.Context())) }) {
		ok(t, err)
	}
	for _, err := range a.Sessions(t.Context(), cove.SessionFilter{State: cove.Ended, Node: "b"}) {
		ok(t, err)
		sum++
	}
	same(t, sum, 100)
	same(t, c.counted("tenant:acme"), [2]string{})
}

func TestPutSessionIsOneCommand(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a := c.join("a")
	rec := session("s", "a", "ann")
	ok(t, a.PutSession(t.Context(), rec)) // the server may not know the script yet
	before := a.Commands()
	ok(t, a.PutSession(t.Context(), rec))
	same(t, a.Commands()-before, 1)
}

// TestLostWhileItStarts loses the node of a session that was being started again: its
// files are still where every node finds them.
func TestLostWhileItStarts(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.join("a"), c.join("b")
	starting := session("starting", "a", "ann")
	starting.Archived, starting.Spec.Workspace.Moves = true, true
	running := session("running", "a", "bob")
	running.Spec.Workspace.Moves = true
	ok(t, a.PutSession(t.Context(), starting))
	ok(t, a.PutSession(t.Context(), running))
	c.expire("a")
	got, err := b.Locate(t.Context(), "starting")
	ok(t, err)
	same(t, fmt.Sprint(got.State, " at ", got.Node), "stopped at ")
	got, err = b.Locate(t.Context(), "running")
	ok(t, err)
	same(t, fmt.Sprint(got.State, " ", got.Cause), "ended node_lost")

	var unowned []cove.ID
	for s, err := range b.Unowned(t.Context()) {
		ok(t, err)
		unowned = append(unowned, s.ID)
	}
	same(t, fmt.Sprint(unowned), "[starting]")
	ok(t, errOf(b.Adopt(t.Context(), "starting")))
	for s := range b.Unowned(t.Context()) {
		t.Errorf("%s is nobody's", s.ID)
	}
}

// TestRoom asks for room as a session does that is started again.
func TestRoom(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a := c.join("a")
	one := session("one", "a", "")
	ok(t, a.Room(t.Context(), one))
	ok(t, a.PutSession(t.Context(), one))
	ok(t, a.PutTenant(t.Context(), &cove.Tenant{Name: "acme", Quota: cove.Bounds{Memory: 2 * cove.GiB}}))
	two := session("two", "a", "")
	ok(t, a.Room(t.Context(), two))
	two.Memory++
	fails(t, a.Room(t.Context(), two), cove.Exhausted, cove.ReasonTenantQuota)
	ok(t, a.PutTenant(t.Context(), &cove.Tenant{Name: "acme", Quota: cove.Bounds{Sessions: 1}}))
	fails(t, a.Room(t.Context(), session("two", "a", "")), cove.Exhausted, cove.ReasonTenantQuota)
	one.State = cove.Stopped
	ok(t, a.PutSession(t.Context(), one))
	ok(t, a.Room(t.Context(), session("two", "a", "")))
}
