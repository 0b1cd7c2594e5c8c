package engine

import (
	"context"
	"net"
	"slices"

	"github.com/cove-sandbox/cove"
)

// ports is the part of the platform that reaches into one session.
type ports struct {
	v  view
	id cove.ID
}

// Dial implements [cove.Ports]. The session is busy until the connection is
// closed.
func (p ports) Dial(ctx context.Context, port int) (net.Conn, error) {
	return act(ctx, p.v, on(cove.PortDial, p.id), func(ctx context.Context, st *step) (net.Conn, error) {
		if err := cove.ValidPort(port); err != nil {
			return nil, err
		}
		sandbox, err := st.lease.enter()
		if err != nil {
			return nil, err
		}
		dialer, ok := cove.As[cove.Dialer](sandbox)
		if !ok {
			st.lease.leave()
			return nil, lacks(st.lease, cove.PowerDial)
		}
		conn, err := dialer.Dial(ctx, port)
		if err != nil {
			st.lease.leave()
			return nil, err
		}
		return &leavingConn{Conn: p.v.e.bothWays(st.lease.tenant, conn), leave: st.lease.leave}, nil
	})
}

// lacks is the answer where a provider cannot do something.
func lacks(l *lease, power cove.Power) error {
	layered := []cove.Power{cove.PowerSnapshot, cove.PowerFork, cove.PowerTrial}
	if l.workspace() == cove.WorkspaceDisk && slices.Contains(layered, power) {
		return cove.Errorf(cove.Unsupported, "provider %s has no power to %s with a disk workspace", l.provider(), power).
			With("power", string(power)).Remedy("open the session with a memory workspace")
	}
	return cove.Errorf(cove.Unsupported, "provider %s has no power to %s", l.provider(), power).
		With("power", string(power)).Remedy("open the session with a provider that has it; cove doctor lists them")
}
