package gvisor

import (
	"context"
	"iter"
	"net"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
	"github.com/cove-sandbox/cove/internal/guest"
)

// way is how a sandbox gets out: the agent listens inside, at addresses that are
// the sandbox's own, and hands what connects there to a gateway in this process.
type way struct {
	*egress.Way

	gate *egress.Gateway
}

// reaching is a sandbox with a way out. It implements [cove.Egress] besides.
type reaching struct {
	cove.Sandbox

	s *sandbox
}

var _ cove.Egress = reaching{}

// Unwrap lets [cove.As] find the powers below.
func (r reaching) Unwrap() cove.Sandbox { return r.Sandbox }

// reach adds a way out to what others see of a sandbox, if it has one.
func (s *sandbox) reach(face cove.Sandbox) cove.Sandbox {
	if s.way == nil {
		return face
	}
	return reaching{face, s}
}

// leave gives a sandbox its way out, if its network has one.
func (s *sandbox) leave(ctx context.Context, n cove.Network) error {
	if n.Mode == cove.NetworkNone {
		return nil
	}
	w := &way{Way: egress.NewWay(s.p.cfg.Egress, n.Mode, nil)}
	c, ports, err := w.Begin(ctx, n, s.conn.Files())
	if err != nil {
		return err
	}
	list, err := s.conn.Listen(ctx, true, ports...)
	if err != nil {
		return err
	}
	if w.gate, err = egress.Open(c, sockets(list), egress.Options{World: s.p.cfg.Egress.World}); err != nil {
		return err
	}
	s.way = w
	return nil
}

// sockets are those of a gateway.
func sockets(w *guest.Ways) egress.Sockets {
	s := egress.Sockets{TCP: []net.Listener{w.TCP}, Range: w.Range}
	if w.Packets != nil {
		s.DNS, s.Stream = []net.PacketConn{w.Packets}, []net.Listener{w.Stream}
	}
	return s
}

// shut ends what leads out.
func (s *sandbox) shut() error {
	if s.way == nil {
		return nil
	}
	return s.way.gate.Close()
}

// SetNetwork implements [cove.Egress].
func (r reaching) SetNetwork(ctx context.Context, n cove.Network) error {
	if r.s.isGone() {
		return r.s.goneError()
	}
	w := r.s.way
	return w.Change(ctx, n, r.s.conn.Files(), func(ports []uint16) error {
		list, err := r.s.conn.Listen(ctx, false, ports...)
		if err != nil {
			return err
		}
		return w.gate.Listen(sockets(list))
	}, func(n cove.Network, c egress.Config) error {
		if err := w.gate.Set(c); err != nil {
			return err
		}
		return r.s.rewrite(func(one *note) { one.Spec.Network = n })
	})
}

// Connections implements [cove.Egress].
func (r reaching) Connections(ctx context.Context, after int64) iter.Seq2[cove.Connection, error] {
	return func(yield func(cove.Connection, error) bool) {
		if r.s.isGone() {
			yield(cove.Connection{}, r.s.goneError())
			return
		}
		r.s.settleWays(ctx)
		egress.Each(ctx, r.s.way.gate.Connections(after))(yield)
	}
}

// wayPatience is how long the end of a connection may be on its way to us.
const wayPatience = 20 * time.Millisecond

// settleWays lets what has ended inside be told here, too.
func (s *sandbox) settleWays(ctx context.Context) {
	_ = s.conn.Ping(ctx) // what it said before is here by then
	late := time.NewTimer(wayPatience)
	defer late.Stop()
	select {
	case <-late.C:
	case <-ctx.Done():
	}
}

// Start implements [cove.Sandbox]: programs learn whom to trust, unless they were
// told otherwise.
func (r reaching) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	cmd.Env = r.s.way.Env(cmd.Env, r.s.noted().Spec.Env)
	return r.Sandbox.Start(ctx, cmd)
}
