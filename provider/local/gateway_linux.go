//go:build !lean

package local

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
)

// gateway answers the sockets in a sandbox, wherever it runs. Methods are safe for
// concurrent use.
type gateway interface {
	// Set replaces what may go out.
	Set(ctx context.Context, c egress.Config) error
	// Listen hands over the sockets of more ports, which are closed if it fails.
	Listen(ctx context.Context, s sockets) error
	// Connections returns what is kept above a number, oldest first.
	Connections(ctx context.Context, after int64) ([]cove.Connection, error)
	// Close ends all connections. It is idempotent.
	Close() error
}

// sockets are descriptors of sockets in the network of a sandbox.
type sockets struct {
	packets, streams []int // of the name server
	ports            []int
}

func (s sockets) close() {
	for _, list := range [][]int{s.packets, s.streams, s.ports} {
		for _, fd := range list {
			_ = unix.Close(fd)
		}
	}
}

// openGateway starts one in this process. The sockets are its own, whatever is
// returned.
func openGateway(c egress.Config, s sockets, w egress.World) (gateway, error) {
	list, err := egress.FromDescriptors(s.packets, s.streams, s.ports)
	if err != nil {
		return nil, err
	}
	g, err := egress.Open(c, list, egress.Options{World: w})
	if err != nil {
		return nil, err
	}
	return ourGateway{g}, nil
}

// ourGateway is one in this process.
type ourGateway struct{ g *egress.Gateway }

func (o ourGateway) Set(_ context.Context, c egress.Config) error { return o.g.Set(c) }

func (o ourGateway) Listen(_ context.Context, s sockets) error {
	list, err := egress.FromDescriptors(s.packets, s.streams, s.ports)
	if err != nil {
		return err
	}
	return o.g.Listen(list)
}

func (o ourGateway) Connections(_ context.Context, after int64) ([]cove.Connection, error) {
	return o.g.Connections(after), nil
}

func (o ourGateway) Close() error { return o.g.Close() }
