package cluster_test

import (
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

// TestNodeWithAnotherSecret has a node in the directory that nobody can speak with. New
// sessions come to the others.
func TestNodeWithAnotherSecret(t *testing.T) {
	r := newRedis(t)
	prefix := settled(t, r.URL(), 1)()
	good, stranger := newNode(t, r.URL(), prefix, "good"), newNode(t, r.URL(), prefix, "stranger")
	stranger.secret = "another-secret-of-32-characters!"
	good.o.MaxMemory, stranger.o.MaxMemory = 64<<30, 64<<30
	start(t, good, stranger)
	for range 4 {
		s, err := good.member.As(somebody()).Sessions().Open(t.Context(), cove.OpenRequest{})
		if err != nil {
			t.Fatalf("open beside a node that cannot be asked: %v", err)
		}
		if s.Node != "good" {
			t.Errorf("a session is at %s", s.Node)
		}
		if err := good.member.BeatNow(t.Context()); err != nil {
			t.Fatal(err)
		}
		good.member.Look(t.Context()) // the other one looks better from now on
	}
}

// TestKeyAtAnotherNode repeats a request for a key at a node that did not make it.
func TestKeyAtAnotherNode(t *testing.T) {
	r := newRedis(t)
	prefix := settled(t, r.URL(), 1)()
	a, b := newNode(t, r.URL(), prefix, "a"), newNode(t, r.URL(), prefix, "b")
	start(t, a, b)
	req := cove.KeyRequest{Name: "ci", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeExec}, IdempotencyKey: "once"}
	if _, _, err := a.member.As(somebody()).Admin().CreateKey(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*node{a, b} {
		_, _, err := n.member.As(somebody()).Admin().CreateKey(t.Context(), req)
		if cove.CodeOf(err) != cove.Conflict || cove.ReasonOf(err) != cove.ReasonKeyReused {
			t.Errorf("the same request at node %s: %v; want that the key is there", n.name, err)
		}
	}
}

// TestVolumeOfANodeThatIsGone opens a session with a volume that is on a node which is
// not there. The answer names that node, not the one that was asked first.
func TestVolumeOfANodeThatIsGone(t *testing.T) {
	r := newRedis(t)
	prefix := settled(t, r.URL(), 1)()
	a, b, c := newNode(t, r.URL(), prefix, "a"), newNode(t, r.URL(), prefix, "b"), newNode(t, r.URL(), prefix, "c")
	start(t, a, b, c)
	if _, err := c.member.As(somebody()).Volumes().Create(t.Context(), cove.VolumeRequest{Name: "data"}); err != nil {
		t.Fatal(err)
	}
	c.close()
	sees(t, a, 2)
	spec := cove.Spec{Volumes: []cove.Volume{{Name: "data", Target: "/data"}}}
	for range 4 {
		_, err := a.member.As(somebody()).Sessions().Open(t.Context(), cove.OpenRequest{Spec: spec})
		e, ok := err.(*cove.Error) //nolint:errorlint // it is what callers get
		if !ok || e.Details["node"] != "c" {
			t.Fatalf("open with a volume of node c: %v; want that node c is not there", err)
		}
	}
	if err := a.member.As(somebody()).Volumes().Delete(t.Context(), "data"); cove.ReasonOf(err) != cove.ReasonNodeAway {
		t.Errorf("delete a volume of a node that may be back: %v", err)
	}
	r.Do("DEL", "{"+prefix+"}:lease:c")
	if err := a.member.As(somebody()).Volumes().Delete(t.Context(), "data"); err != nil {
		t.Errorf("delete a volume of a node that is gone: %v", err)
	}
	if _, err := b.member.As(somebody()).Volumes().Create(t.Context(), cove.VolumeRequest{Name: "data"}); err != nil {
		t.Errorf("a volume of that name: %v", err)
	}
}

// TestHungNode has a node take calls and never answer, as one does that stands still.
// When it is gone, whoever waits for it is told.
func TestHungNode(t *testing.T) {
	r := newRedis(t)
	prefix := settled(t, r.URL(), 1)()
	a, b := newNode(t, r.URL(), prefix, "a"), newNode(t, r.URL(), prefix, "b")
	start(t, a, b)
	cordon(t, a, b)
	p := a.member.As(somebody())
	s := open(t, p, cove.Spec{})
	answered := make(chan error, 1)
	began := make(chan struct{})
	go func() {
		_, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "echo begun; sleep 60", Limits: cove.Limits{Wall: time.Minute}, OnOutput: func(cove.Chunk) {
			select {
			case <-began:
			default:
				close(began)
			}
		}})
		answered <- err
	}()
	<-began
	b.link.cut.Store(true)
	r.Do("DEL", "{"+prefix+"}:lease:b")
	a.member.Look(t.Context())
	if err := <-answered; cove.ReasonOf(err) != cove.ReasonOutcomeUnknown || waits(err) {
		t.Errorf("who waited is told %v", err)
	}
	if _, err := p.Sessions().Get(t.Context(), s.ID); cove.ReasonOf(err) != cove.ReasonNodeLost {
		t.Errorf("and then %v", err)
	}
	b.link.cut.Store(false)
	b.must(b.member.BeatNow(t.Context()))
}

// TestBoundsOutliveTheDirectory has Redis lose all: nodes put back what tenants may have.
func TestBoundsOutliveTheDirectory(t *testing.T) {
	a, b := pair(t)
	who := somebody()
	if err := a.directory.PutTenant(t.Context(), &cove.Tenant{Name: who.Tenant, Quota: cove.Bounds{Sessions: 1}}); err != nil {
		t.Fatal(err)
	}
	open(t, a.member.As(who), cove.Spec{})
	a.redis.Flush()
	a.must(a.member.BeatNow(t.Context()))
	b.must(b.member.BeatNow(t.Context()))
	a.engine.TenantChanged(t.Context(), "") // as every node does then
	b.engine.TenantChanged(t.Context(), "")
	kept, err := b.directory.GetTenant(t.Context(), who.Tenant)
	if err != nil || kept.Quota.Sessions != 1 {
		t.Errorf("the bounds are %+v, %v", kept, err)
	}
}
