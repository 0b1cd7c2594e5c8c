//go:build linux

package docker

import (
	"context"
	"io"
	"iter"
	"net"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
)

// way is how a sandbox gets out: programs connect to their own loopback, where the
// agent takes the connections for a gateway in this process.
type way struct {
	*egress.Way

	gate *egress.Gateway
}

// depart gives a sandbox its way out, if its network has one.
func (s *sandbox) depart(ctx context.Context, n cove.Network) error {
	if n.Mode != cove.NetworkAllow {
		return nil
	}
	if err := s.asksUs(ctx); err != nil {
		return err
	}
	w := &way{Way: egress.NewWay(s.p.cfg.Egress, n.Mode, nil)}
	c, ports, err := w.Begin(ctx, n, s.conn.Load().Files())
	if err != nil {
		return err
	}
	ways, err := s.conn.Load().Listen(ctx, true, ports...)
	if err != nil {
		return err
	}
	if w.gate, err = egress.Open(c, socketsOf(ways), egress.Options{World: s.p.cfg.Egress.World}); err != nil {
		return err
	}
	s.way = w
	return nil
}

// resolvers is where programs read whom to ask for names.
const resolvers = "/etc/resolv.conf"

// asksUs demands that programs ask the agent for names: some engines write nothing
// about that, and then it is what the image says.
func (s *sandbox) asksUs(ctx context.Context) error {
	r, err := s.conn.Load().Files().Read(ctx, resolvers, 0, 4<<10)
	if err == nil {
		var text []byte
		text, err = io.ReadAll(io.LimitReader(r, 4<<10))
		_ = r.Close()
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) == 2 && f[0] == "nameserver" {
				if f[1] == "127.0.0.1" {
					return nil
				}
				break // the first is asked first
			}
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return cove.Wrap(cove.Unsupported, err, "network.mode: programs in this image do not ask 127.0.0.1 for names, and the engine does not tell them to").
		With("field", "network.mode").Remedy("put the line nameserver 127.0.0.1 into %s of the image", resolvers)
}

// shut ends what leads out.
func (w *way) shut() {
	if w != nil {
		_ = w.gate.Close()
	}
}

// reaching is a sandbox with a way out.
type reaching struct {
	cove.Sandbox

	s *sandbox
}

var _ cove.Egress = reaching{}

// Unwrap lets [cove.As] find the powers below.
func (r reaching) Unwrap() cove.Sandbox { return r.Sandbox }

// SetNetwork implements [cove.Egress].
func (r reaching) SetNetwork(ctx context.Context, n cove.Network) error {
	if r.s.isGone() {
		return r.s.goneError()
	}
	w := r.s.way
	return w.Change(ctx, n, r.s.conn.Load().Files(), func(ports []uint16) error {
		more, err := r.s.conn.Load().Listen(ctx, false, ports...)
		if err != nil {
			return err
		}
		return w.gate.Listen(egress.Sockets{TCP: []net.Listener{more.TCP}})
	}, func(n cove.Network, c egress.Config) error {
		if err := w.gate.Set(c); err != nil {
			return err
		}
		return r.s.rewrite(func(written *note) { written.Spec.Network = n })
	})
}

// Connections implements [cove.Egress].
func (r reaching) Connections(ctx context.Context, after int64) iter.Seq2[cove.Connection, error] {
	return func(yield func(cove.Connection, error) bool) {
		if r.s.isGone() {
			yield(cove.Connection{}, r.s.goneError())
			return
		}
		egress.Each(ctx, r.s.way.gate.Connections(after))(yield)
	}
}

// Start implements [cove.Sandbox]: programs learn whom to trust, unless they were
// told otherwise.
func (r reaching) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	cmd.Env = r.s.way.Env(cmd.Env, r.s.note.Spec.Env)
	return r.Sandbox.Start(ctx, cmd)
}

// unwatched is a sandbox on the engine's own network.
type unwatched struct{ cove.Sandbox }

var _ cove.Egress = unwatched{}

// Unwrap lets [cove.As] find the powers below.
func (u unwatched) Unwrap() cove.Sandbox { return u.Sandbox }

func (u unwatched) refusal() error {
	return cove.Errorf(cove.Unsupported, "network.mode: nobody watches the engine's own network, nor can it be changed").
		With("field", "network.mode").Remedy("open a session with the network %q", cove.NetworkAllow)
}

// SetNetwork is not to be had.
func (u unwatched) SetNetwork(context.Context, cove.Network) error { return u.refusal() }

// Connections is not to be had.
func (u unwatched) Connections(context.Context, int64) iter.Seq2[cove.Connection, error] {
	return func(yield func(cove.Connection, error) bool) { yield(cove.Connection{}, u.refusal()) }
}
