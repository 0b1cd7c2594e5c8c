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
