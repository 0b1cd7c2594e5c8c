package cluster_test

import (
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/cluster"
)

// nobody is an address that nothing listens on: no ordinary program may.
const nobody = "127.0.0.1:1"

// abroad starts a cluster of one node, and another whose settings name it after a node
// that is not there.
func abroad(t *testing.T, of cluster.Region) (here, there *node) {
	t.Helper()
	r := newRedis(t)
	next := settled(t, r.URL(), 2)
	there = newNode(t, r.URL(), next(), "there")
	there.region = "eu"
	start(t, there)
	of.Name, of.Nodes = "eu", []string{nobody, there.address}
	here = newNode(t, r.URL(), next(), "here")
	here.region, here.others = "us", []cluster.Region{of}
	start(t, here)
	return here, there
}

// TestSessionOfARegionThatIsAway asks for a session of a cluster that does not answer:
// nobody can say that it is not there.
func TestSessionOfARegionThatIsAway(t *testing.T) {
	here, there := abroad(t, cluster.Region{Metadata: map[string]string{"region": "eu"}})
	s, err := there.member.As(somebody()).Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	there.close()
	_, err = here.member.As(somebody()).Sessions().Get(t.Context(), s.ID)
	if cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("a session in a region that is away: %v; want unavailable", err)
	}
}

// TestTenantOfARegionThatIsAway is told so, whatever it does.
func TestTenantOfARegionThatIsAway(t *testing.T) {
	here, there := abroad(t, cluster.Region{Tenants: []string{"acme"}})
	there.close()
	at := here.member.As(somebody())
	_, opened := at.Sessions().Open(t.Context(), cove.OpenRequest{})
	_, got := at.Sessions().Get(t.Context(), cove.NewID())
	_, run := at.Runs().Get(t.Context(), cove.NewID())
	for what, err := range map[string]error{"open": opened, "get": got, "run": run} {
		if cove.CodeOf(err) != cove.Unavailable || cove.ReasonOf(err) != cove.ReasonNodeAway {
			t.Errorf("%s: %v (%s); want that the region is away", what, err, cove.ReasonOf(err))
		}
	}
}

// TestTenantThatCannotBeNamedAbroad has a key that is too large to be told to another
// cluster: nothing that its tenant does is done here instead.
func TestTenantThatCannotBeNamedAbroad(t *testing.T) {
	here, _ := abroad(t, cluster.Region{Tenants: []string{"acme"}})
	p := somebody()
	p.Defaults.Env = map[string]string{"LARGE": strings.Repeat("x", 64<<10)}
	at := here.member.As(p)
	_, opened := at.Sessions().Open(t.Context(), cove.OpenRequest{})
	_, runs := at.Runs().Get(t.Context(), cove.NewID())
	_, dialed := at.Ports(cove.NewID()).Dial(t.Context(), 80)
	var listed error
	for _, listed = range at.Sessions().List(t.Context(), cove.SessionFilter{}) {
	}
	for what, err := range map[string]error{"open": opened, "runs": runs, "dial": dialed, "list": listed} {
		if cove.CodeOf(err) != cove.Unsupported || cove.RemedyOf(err) == "" {
			t.Errorf("%s: %v; want unsupported", what, err)
		}
	}
}

// TestTenantAbroadBesideADeadNode has a tenant whose region has one node that does not
// answer and one that does.
func TestTenantAbroadBesideADeadNode(t *testing.T) {
	here, _ := abroad(t, cluster.Region{Tenants: []string{"acme"}})
	var err error
	for range 3 {
		if _, err = here.member.As(somebody()).Sessions().Open(t.Context(), cove.OpenRequest{}); err == nil {
			return
		}
	}
	t.Errorf("open for a tenant of another region: %v", err)
}

// TestLinksAbroad: a link would be redeemed where nobody knows the key that it was made
// for, so there is none to a session of another region.
func TestLinksAbroad(t *testing.T) {
	eu := map[string]string{"region": "eu"}
	here, _ := abroad(t, cluster.Region{Metadata: eu})
	at := here.member.As(somebody())
	s := open(t, at, cove.Spec{Metadata: eu})
	_, down := at.Links().Download(t.Context(), cove.FileLink{Session: s.ID, Path: "/workspace/f"})
	_, up := at.Links().Upload(t.Context(), cove.FileLink{Session: s.ID, Path: "/workspace/f"})
	_, port := at.Links().Port(t.Context(), cove.PortLink{Session: s.ID, Port: 80})
	for what, err := range map[string]error{"download": down, "upload": up, "port": port} {
		if cove.CodeOf(err) != cove.Unsupported || !strings.Contains(cove.RemedyOf(err), "address of region eu") {
			t.Errorf("%s: %v, remedy %q", what, err, cove.RemedyOf(err))
		}
	}
}

// TestKeysAreOfTheClusterThatIsAsked has an admin whose tenant is in another region make
// keys: they open this cluster.
func TestKeysAreOfTheClusterThatIsAsked(t *testing.T) {
	here, there := abroad(t, cluster.Region{Tenants: []string{"acme"}})
	at := here.member.As(somebody()).Admin()
	k, _, err := at.CreateKey(t.Context(), cove.KeyRequest{Name: "k", Scopes: []cove.Scope{cove.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := here.directory.KeyByID(t.Context(), k.ID); err != nil {
		t.Errorf("the key is not here: %v", err)
	}
	if _, err := there.directory.KeyByID(t.Context(), k.ID); cove.CodeOf(err) != cove.NotFound {
		t.Errorf("the key is abroad: %v", err)
	}
	listed := 0
	for _, err := range at.Keys(t.Context()) {
		here.must(err)
		listed++
	}
	if err := at.RevokeKey(t.Context(), k.ID); err != nil || listed != 1 {
		t.Errorf("%d keys; revoke: %v", listed, err)
	}
}

// TestSettled refuses what belongs to another region, and opens nothing here instead.
func TestSettled(t *testing.T) {
	eu := map[string]string{"region": "eu"}
	here, _ := abroad(t, cluster.Region{Tenants: []string{"pinned"}, Metadata: eu})
	who := somebody()
	open(t, here.member.Settled(who), cove.Spec{})
	_, marked := here.member.Settled(who).Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Metadata: eu}})
	who.Tenant = "pinned"
	_, pinned := here.member.Settled(who).Sessions().Open(t.Context(), cove.OpenRequest{})
	for what, err := range map[string]error{"metadata": marked, "tenant": pinned} {
		if cove.CodeOf(err) != cove.Unsupported || !strings.Contains(cove.RemedyOf(err), "address of region eu") {
			t.Errorf("%s: %v, remedy %q", what, err, cove.RemedyOf(err))
		}
	}
}
