package cluster

import (
	"context"
	"crypto/tls"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/placement"
)

// Known is how the other nodes were when they were last looked at.
func (m *Member) Known() []cove.Node { return m.members() }

// Look looks at the other nodes now.
func (m *Member) Look(ctx context.Context) { m.look(ctx, false) }

// BeatNow renews the lease once.
func (m *Member) BeatNow(ctx context.Context) error { return m.beat(ctx) }

// Remembers reports where a session of another node is thought to be.
func (m *Member) Remembers(id cove.ID) (string, bool) { return m.known.get(id) }

// Wants is what a session that a caller opens needs of a node, where there are these.
func Wants(nodes []cove.Node, p cove.Principal, s cove.Spec) placement.Want {
	m := &Member{}
	m.nodes.Store(&nodes)
	return view{m: m, p: p}.wants(s)
}

// CallerConfig is how a node calls another, for who knows a secret.
func CallerConfig(secret, from, to string) (*tls.Config, error) {
	id, err := newIdentity(secret, from)
	if err != nil {
		return nil, err
	}
	return id.caller(hostOf(to)), nil
}

// RunOut has the lease be over, as far as the node itself knows.
func (m *Member) RunOut() { m.good.Store(0) }

// Crash has the node no longer beat or answer, as if it had been killed: it gives
// nothing back.
func (m *Member) Crash() {
	m.serving.Store(false)
	m.stop()
	m.done.Wait()
	m.peers.close()
}

// Recorded is the part of a list that comes from the directory.
func (m *Member) Recorded(ctx context.Context, as cove.Principal, f cove.SessionFilter) ([]*cove.Session, error) {
	return view{m: m, p: as}.recorded(ctx, f)
}
