package cluster

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync/atomic"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
)

// Region is another cluster, with the same secret, and what belongs there.
type Region struct {
	Name     string
	Nodes    []string          // addresses of doors for nodes; any of them will do
	Tenants  []string          // all that these do is done there
	Metadata map[string]string // a session with all of these is opened there
}

// has reports whether a region is where sessions with this metadata are opened.
func (r *Region) has(metadata map[string]string) bool {
	for name, value := range r.Metadata {
		if metadata[name] != value {
			return false
		}
	}
	return len(r.Metadata) > 0
}

// regions are the other clusters, as this node calls them.
type regions struct {
	list []*region
}

type region struct {
	Region

	turn atomic.Uint64 // which of its nodes is called; another one after one that could not be
}

// newRegions leaves out the region that is this cluster itself.
func newRegions(all []Region, own string) *regions {
	rs := &regions{}
	for _, r := range all {
		if r.Name != own {
			r.Nodes, r.Tenants, r.Metadata = slices.Clone(r.Nodes), slices.Clone(r.Tenants), maps.Clone(r.Metadata)
			rs.list = append(rs.list, &region{Region: r})
		}
	}
	return rs
}

// ofTenant is the region that all a tenant does is done in; nil: this one.
func (rs *regions) ofTenant(tenant string) *region {
	for _, r := range rs.list {
		if slices.Contains(r.Tenants, tenant) {
			return r
		}
	}
	return nil
}

// ofMetadata is the region that a session is opened in; nil: this one.
func (rs *regions) ofMetadata(metadata map[string]string) *region {
	for _, r := range rs.list {
		if r.has(metadata) {
			return r
		}
	}
	return nil
}

// named returns a region by its name, or nil.
func (rs *regions) named(name string) *region {
	for _, r := range rs.list {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// inRegion marks the place of a session in the memory: a region, not a node. No
// node's name begins with a space.
const inRegion = " "

// abroad returns the platform that another cluster has for the caller.
func (v view) abroad(r *region) (cove.Platform, error) {
	dialer := v.m.peers.dialer
	p, err := v.m.peers.dial("", r.Name, anyNode, v.p, client.WithConnect(func(ctx context.Context) (net.Conn, error) { return r.connect(ctx, dialer) }))
	if err != nil {
		return nil, err
	}
	return foreign{p, r.Name, v}, nil
}

// refusing returns a platform that answers everything with an error: it never gets as
// far as a connection.
func refusing(err error) cove.Platform {
	c, _ := client.New("http://nobody", "", client.WithAutoRetry(false), // the address is good
		client.WithConnect(func(context.Context) (net.Conn, error) { return nil, err }))
	return c
}

// connect calls the first node of a region that can be, beginning with the one that
// could be before.
func (r *region) connect(ctx context.Context, dialer *net.Dialer) (c net.Conn, err error) {
	for range r.Nodes {
		turn := r.turn.Load()
		if c, err = dialer.DialContext(ctx, "tcp", r.Nodes[turn%uint64(len(r.Nodes))]); err == nil || ctx.Err() != nil {
			return c, err
		}
		r.turn.CompareAndSwap(turn, turn+1) // others may have found out as well
	}
	return nil, farAway(r, err)
}

// openAbroad opens a session in another cluster, by the first of its nodes that can
// be called.
func (v view) openAbroad(ctx context.Context, r *region, req cove.OpenRequest) (s *cove.Session, err error) {
	for range r.Nodes {
		var p cove.Platform
		if p, err = v.abroad(r); err != nil {
			return nil, err
		}
		if s, err = p.Sessions().Open(ctx, req); err == nil {
			v.m.known.put(s.ID, inRegion+r.Name)
			return s, nil
		}
		if !broke(err) {
			return nil, err
		}
		r.turn.Add(1)
		if !notSent(err) {
			if v.changes {
				return nil, v.unanswered(inRegion+r.Name, err)
			}
			break
		}
	}
	return nil, farAway(r, err)
}

// lookAbroad finds out which region has a session that this one does not know; "" is
// none. Where a region does not answer nobody can say that.
func (v view) lookAbroad(ctx context.Context, id cove.ID) (place string, unsure error) {
	for _, r := range v.m.regions.list {
		err := v.askFor(ctx, r, id)
		switch {
		case broke(err):
			unsure = farAway(r, err)
		case cove.CodeOf(err) == cove.Unavailable:
			unsure = err
		case err == nil, cove.CodeOf(err) == cove.NotFound && cove.ReasonOf(err) != cove.ReasonNoSession:
			v.m.known.put(id, inRegion+r.Name)
			return inRegion + r.Name, nil
		}
	}
	return "", unsure
}

// askFor asks the first node of a region that can be called for a session.
func (v view) askFor(ctx context.Context, r *region, id cove.ID) (err error) {
	for range r.Nodes {
		var p cove.Platform
		if p, err = v.abroad(r); err != nil {
			return err
		}
		if _, err = p.Sessions().Get(ctx, id); !broke(err) {
			return err
		}
		r.turn.Add(1)
	}
	return err
}

func farAway(r *region, err error) error {
	return cove.Wrap(cove.Unavailable, err, "region %s cannot be reached now", r.Name).Reason(cove.ReasonNodeAway).
		With("retry_after", retrySoon).With("region", r.Name).Remedy("try again in a moment")
}
