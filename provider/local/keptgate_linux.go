//go:build !lean

package local

import (
	"context"
	"errors"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
	"github.com/cove-sandbox/cove/internal/keeper"
)

// keptGateway is one in the keeper: it goes on while there is no server.
type keptGateway struct{ held *held }

// openKeptGateway starts one. The sockets are its own, whatever is returned.
func openKeptGateway(ctx context.Context, h *held, c egress.Config, s sockets) (gateway, error) {
	defer s.close()
	if err := h.client.Gate(ctx, h.id, c, s.kept()); err != nil {
		return nil, keeperFault(err)
	}
	return keptGateway{h}, nil
}

func (s sockets) kept() keeper.Sockets {
	return keeper.Sockets{Packets: s.packets, Streams: s.streams, Ports: s.ports}
}

func (k keptGateway) Set(ctx context.Context, c egress.Config) error {
	return faultOf(k.held.client.Set(ctx, k.held.id, c))
}

func (k keptGateway) Listen(ctx context.Context, s sockets) error {
	defer s.close()
	return faultOf(k.held.client.Listen(ctx, k.held.id, s.kept()))
}

func (k keptGateway) Connections(ctx context.Context, after int64) ([]cove.Connection, error) {
	list, err := k.held.client.Connections(ctx, k.held.id, after)
	return list, faultOf(err)
}

// Close is for a sandbox that ends. A keeper that is gone has closed everything.
func (k keptGateway) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), keeperPatience)
	defer cancel()
	err := k.held.client.Ungate(ctx, k.held.id)
	if errors.Is(err, keeper.ErrGone) || errors.Is(err, keeper.ErrUnknown) {
		return nil
	}
	return faultOf(err)
}

// wayNote is what the next process must know of a way out.
type wayNote struct {
	Network cove.Network      `json:"network"`
	Ports   []uint16          `json:"ports,omitempty"` // have a socket
	CA      *egress.Authority `json:"ca,omitempty"`
}

// note is what is written down of a way out; nil if it ends with this process.
func (w *way) note(n cove.Network) *wayNote {
	if w == nil {
		return nil
	}
	if _, kept := w.gate.(keptGateway); !kept {
		return nil
	}
	return &wayNote{Network: n, Ports: w.Ports(), CA: w.Authority()}
}

// rejoin gives a sandbox of an earlier process its way out again.
func (s *sandbox) rejoin(n *wayNote) {
	if n == nil {
		return
	}
	s.way = &way{Way: egress.NewWay(s.p.cfg.Egress, n.Network.Mode, openPorts), gate: keptGateway{s.made.held}, mode: n.Network.Mode}
	s.way.Resume(n.Ports, n.CA)
}

// part lets go of the way out of a sandbox that lives on. What is not kept ends.
func (w *way) part() {
	if w == nil {
		return
	}
	if _, kept := w.gate.(keptGateway); !kept {
		_ = w.gate.Close()
	}
}
