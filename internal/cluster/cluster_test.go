package cluster_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/archive"
	"github.com/cove-sandbox/cove/internal/cluster"
	"github.com/cove-sandbox/cove/internal/wire"
)

// pair starts two nodes of one cluster.
func pair(t *testing.T, prepare ...func(*node)) (a, b *node) {
	t.Helper()
	r := newRedis(t)
	prefix := settled(t, r.URL(), 1)()
	a, b = newNode(t, r.URL(), prefix, "a"), newNode(t, r.URL(), prefix, "b")
	for _, p := range prepare {
		p(a)
		p(b)
	}
	a.redis, b.redis = r, r
	start(t, a, b)
	return a, b
}

func open(t *testing.T, at cove.Platform, spec cove.Spec) *cove.Session {
	t.Helper()
	s, err := at.Sessions().Open(t.Context(), cove.OpenRequest{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func say(t *testing.T, at cove.Platform, id cove.ID, line string) string {
	t.Helper()
	x, err := at.Processes(id).Exec(t.Context(), cove.ExecRequest{Line: line})
	if err != nil {
		t.Fatal(err)
	}
	return string(x.Stdout.Data)
}

// cordon has a node be given nothing new, as far as both nodes know.
func cordon(t *testing.T, n *node, others ...*node) {
	t.Helper()
	if _, err := n.member.Drain(t.Context(), n.name); err != nil {
		t.Fatal(err)
	}
	if err := n.member.BeatNow(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, o := range append(others, n) {
		o.member.Look(t.Context())
	}
}

// The directory is not asked while a session's own node runs programs in it, and not
// by another node that has asked once.
func TestExecAsksNobody(t *testing.T) {
	a, b := pair(t, func(n *node) { n.lease = time.Hour })
	p, q := a.member.As(somebody()), b.member.As(somebody())
	cordon(t, b, a)
	s := open(t, p, cove.Spec{})
	if s.Node != "a" {
		t.Fatalf("the session is at %s", s.Node)
	}
	say(t, p, s.ID, "true")
	say(t, q, s.ID, "true")
	before := [2]int64{a.directory.Commands(), b.directory.Commands()}
	for range 50 {
		say(t, p, s.ID, "true")
		say(t, q, s.ID, "true")
	}
	if after := [2]int64{a.directory.Commands(), b.directory.Commands()}; after != before {
		t.Errorf("100 programs: %v commands before, %v after", before, after)
	}
}

// The bounds of a tenant and of a key hold for all nodes together.
func TestQuotasHoldForAllNodes(t *testing.T) {
	a, b := pair(t)
	const most = 5
	who := somebody()
	if err := a.directory.PutTenant(t.Context(), &cove.Tenant{Name: who.Tenant, Quota: cove.Bounds{Sessions: most}}); err != nil {
		t.Fatal(err)
	}
	var made atomic.Int64
	var ids sync.Map
	var wg sync.WaitGroup
	for i := range 24 {
		at := []*node{a, b}[i%2].member.As(who)
		wg.Go(func() {
			s, err := at.Sessions().Open(t.Context(), cove.OpenRequest{})
			switch {
			case err == nil:
				made.Add(1)
				ids.Store(s.ID, true)
			case cove.ReasonOf(err) != cove.ReasonTenantQuota:
				t.Errorf("refused with %v", err)
			}
		})
	}
	wg.Wait()
	if made.Load() != most {
		t.Errorf("%d sessions of %d", made.Load(), most)
	}
	// Who waits gets the room that another node's session leaves.
	waited := make(chan error, 1)
	go func() {
		_, err := b.member.As(who).Sessions().Open(t.Context(), cove.OpenRequest{OnFull: cove.WaitWhenFull})
		waited <- err
	}()
	first := true
	ids.Range(func(id, _ any) bool {
		if first {
			_, err := a.member.As(who).Sessions().Close(t.Context(), id.(cove.ID), false)
			a.must(err)
		}
		first = false
		return false
	})
	if err := <-waited; err != nil {
		t.Error(err)
	}
}

// Who waits for sessions of other nodes to end is one of the queue, which has a bound.
func TestQueueForAllNodesHasABound(t *testing.T) {
	a, b := pair(t, func(n *node) { n.o.QueueLength = 2 })
	who := somebody()
	if err := a.directory.PutTenant(t.Context(), &cove.Tenant{Name: who.Tenant, Quota: cove.Bounds{Sessions: 1}}); err != nil {
		t.Fatal(err)
	}
	at := b.engine.As(who)
	s := open(t, a.engine.As(who), cove.Spec{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waited := make(chan error, 2)
	wait := func(ctx context.Context) error {
		_, err := at.Sessions().Open(ctx, cove.OpenRequest{OnFull: cove.WaitWhenFull})
		return err
	}
	queued := func() int {
		stats, err := at.Admin().Stats(t.Context())
		b.must(err)
		return stats.Queued
	}
	for range 2 {
		go func() { waited <- wait(ctx) }()
	}
	for tries := 0; queued() < 2 && tries < 500; tries++ {
		<-time.After(10 * time.Millisecond)
	}
	short, end := context.WithTimeout(t.Context(), 10*time.Second)
	defer end()
	if err := wait(short); cove.CodeOf(err) != cove.Exhausted || cove.ReasonOf(err) != cove.ReasonQueueFull {
		t.Errorf("one more than may wait: %v", err)
	}
	_, err := a.engine.As(who).Sessions().Close(t.Context(), s.ID, false)
	a.must(err)
	if err := <-waited; err != nil {
		t.Errorf("there is room: %v", err)
	}
	cancel()
	if err := <-waited; cove.CodeOf(err) != cove.Canceled {
		t.Errorf("who left: %v", err)
	}
	if n := queued(); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

// One request with an idempotency key makes one session, at whichever nodes it comes.
func TestOnceInTheWholeCluster(t *testing.T) {
	a, b := pair(t)
	var mu sync.Mutex
	made := map[cove.ID]int{}
	var wg sync.WaitGroup
	for i := range 12 {
		at := []*node{a, b}[i%2].member.As(somebody())
		wg.Go(func() {
			s, err := at.Sessions().Open(t.Context(), cove.OpenRequest{IdempotencyKey: "once"})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			made[s.ID]++
		})
	}
	wg.Wait()
	if len(made) != 1 {
		t.Errorf("sessions: %v", made)
	}
	key := cove.OpenRequest{Spec: cove.Spec{User: "u"}, IdempotencyKey: "once"}
	if _, err := b.member.As(somebody()).Sessions().Open(t.Context(), key); cove.ReasonOf(err) != cove.ReasonKeyReused {
		t.Errorf("the key for another request: %v", err)
	}
}

// A drained node gives away the sessions that move, with their files, and keeps those
// that do not.
func TestDrain(t *testing.T) {
	shared, err := archive.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a, b := pair(t, func(n *node) { n.moving = shared })
	cordon(t, b, a)
	p := a.member.As(somebody())
	moves := open(t, p, cove.Spec{Workspace: cove.Workspace{Moves: true}, Wake: true, OnEnd: cove.EndStop, User: "u", Thread: "t"})
	stays := open(t, p, cove.Spec{})
	say(t, p, moves.ID, "echo here > file")
	if moves.Node != "a" || stays.Node != "a" {
		t.Fatalf("sessions at %s and %s", moves.Node, stays.Node)
	}
	if _, err := b.member.Uncordon(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	b.must(b.member.BeatNow(t.Context()))
	cordon(t, a, b)
	for range 600 {
		if !a.engine.Holds(moves.ID) {
			break
		}
		<-time.After(50 * time.Millisecond)
	}
	for _, n := range []*node{a, b} {
		if got := say(t, n.member.As(somebody()), moves.ID, "cat file"); got != "here\n" {
			t.Errorf("through %s: %q", n.name, got)
		}
		if got := say(t, n.member.As(somebody()), stays.ID, "echo still"); got != "still\n" {
			t.Errorf("through %s: %q", n.name, got)
		}
	}
	got, err := p.Sessions().Get(t.Context(), moves.ID)
	if err != nil || got.Node != "b" {
		t.Errorf("the session that moves: %+v, %v", got, err)
	}
	again := open(t, p, cove.Spec{User: "u", Thread: "t"})
	if again.ID != moves.ID || again.Created {
		t.Errorf("opened again: %s at %s, want %s", again.ID, again.Node, moves.ID)
	}
}

// Only nodes are answered at the door for nodes, and only there it counts whom a
// caller says to be.
func TestTheDoorIsForNodes(t *testing.T) {
	a, _ := pair(t)
	who, err := wire.EncodePrincipal(somebody())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(config *tls.Config) (int, error) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+a.address+"/api/sandboxes", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(wire.PrincipalHeader, who)
		resp, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, nil
	}
	right, err := cluster.CallerConfig(secret, "x", "a")
	if err != nil {
		t.Fatal(err)
	}
	if status, err := ask(right); err != nil || status != http.StatusOK {
		t.Fatalf("a node is answered with %d, %v", status, err)
	}
	foreign, err := cluster.CallerConfig(strings.Repeat("x", 40), "x", "a")
	if err != nil {
		t.Fatal(err)
	}
	another, err := cluster.CallerConfig(secret, "x", "b")
	if err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]*tls.Config{
		"without a certificate": {InsecureSkipVerify: true},
		"of another cluster":    {InsecureSkipVerify: true, Certificates: foreign.Certificates},
		"who wants another":     another,
	} {
		if status, err := ask(config); err == nil {
			t.Errorf("a caller %s is answered with %d", name, status)
		}
	}
}

// A secret that can be guessed makes no cluster.
func TestShortSecret(t *testing.T) {
	if _, err := cluster.Derive("short", "x"); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("a short secret: %v", err)
	}
	one, err := cluster.Derive(secret, "x")
	if err != nil {
		t.Fatal(err)
	}
	if other, _ := cluster.Derive(secret, "y"); string(one) == string(other) {
		t.Error("two purposes have the same secret")
	}
}

// Sessions come to the region that their tenant or their metadata says, and are found
// from another one.
func TestRegions(t *testing.T) {
	r := newRedis(t)
	next := settled(t, r.URL(), 2)
	eu := newNode(t, r.URL(), next(), "eu1")
	eu.region = "eu"
	start(t, eu)
	us := newNode(t, r.URL(), next(), "us1")
	us.region = "us"
	us.others = []cluster.Region{
		{Name: "eu", Nodes: []string{"127.0.0.1:1", eu.address}, Tenants: []string{"umlaut"}, Metadata: map[string]string{"region": "eu"}},
		{Name: "us", Nodes: []string{"127.0.0.1:1"}, Tenants: []string{"acme"}},
	}
	start(t, us)
	p := us.member.As(somebody())
	if s := open(t, p, cove.Spec{}); s.Node != "us1" {
		t.Errorf("a session without a region is at %s", s.Node)
	}
	there := open(t, p, cove.Spec{Metadata: map[string]string{"region": "eu", "more": "x"}})
	if there.Node != "eu1" {
		t.Errorf("a session of the other region is at %s", there.Node)
	}
	if got := say(t, p, there.ID, "echo abroad"); got != "abroad\n" {
		t.Errorf("it says %q", got)
	}
	// Another node of this region, or this one started again, does not remember.
	us.close()
	if err := us.open(); err != nil {
		t.Fatal(err)
	}
	if got := say(t, us.member.As(somebody()), there.ID, "echo found"); got != "found\n" {
		t.Errorf("it says %q", got)
	}
	tenant := somebody()
	tenant.Tenant = "umlaut"
	if s := open(t, us.member.As(tenant), cove.Spec{}); s.Node != "eu1" {
		t.Errorf("a session of a tenant of the other region is at %s", s.Node)
	}
	if _, err := us.member.As(tenant).Sessions().Get(t.Context(), there.ID); cove.ReasonOf(err) != cove.ReasonNoSession {
		t.Errorf("another tenant's session: %v", err)
	}
	if _, err := us.member.As(somebody()).Sessions().Get(t.Context(), cove.NewID()); cove.ReasonOf(err) != cove.ReasonNoSession {
		t.Errorf("nobody's session: %v", err)
	}
}

// A node that lost its lease serves nothing, and when it is back ends what others gave
// up meanwhile.
func TestLostLease(t *testing.T) {
	r := newRedis(t)
	prefix := settled(t, r.URL(), 1)()
	a, b := newNode(t, r.URL(), prefix, "a"), newNode(t, r.URL(), prefix, "b")
	start(t, a, b)
	cordon(t, b, a)
	p := a.member.As(somebody())
	s := open(t, p, cove.Spec{User: "u"})
	a.link.cut.Store(true)
	a.member.RunOut()
	r.Do("DEL", fmt.Sprintf("{%s}:lease:a", prefix)) // as if its time were up
	if _, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "true"}); cove.ReasonOf(err) != cove.ReasonFenced {
		t.Errorf("at the node that lost its lease: %v", err)
	}
	q := b.member.As(somebody())
	if _, err := q.Sessions().Get(t.Context(), s.ID); cove.ReasonOf(err) != cove.ReasonNodeLost {
		t.Fatalf("at another node: %v", err)
	}
	a.link.cut.Store(false)
	for range 600 {
		if a.member.Serving() == nil && !a.engine.Holds(s.ID) {
			break
		}
		a.must(a.member.BeatNow(t.Context()))
		<-time.After(20 * time.Millisecond)
	}
	for _, at := range []cove.Platform{p, q} {
		if _, err := at.Sessions().Get(t.Context(), s.ID); cove.ReasonOf(err) != cove.ReasonNodeLost {
			t.Errorf("when the node is back: %v", err)
		}
	}
	if again := open(t, p, cove.Spec{User: "u"}); again.ID == s.ID {
		t.Error("the lost session is back")
	}
}
