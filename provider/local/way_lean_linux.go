//go:build lean

package local

import (
	"context"
	"io"

	"github.com/cove-sandbox/cove"
)

// The lean program lets nothing out of its sandboxes, so that it starts without
// all that this takes. Who wants a network executes the whole one.

// Egress says nothing here.
type Egress struct{}

// Check finds nothing wrong.
func (Egress) Check() error { return nil }

// Allows reports a network that no sandbox can have.
func (Egress) Allows(n cove.Network) error {
	if n.Mode != cove.NetworkNone || len(n.Secrets) > 0 {
		return cove.Errorf(cove.Unsupported, "network.mode: this program gives sandboxes no network").With("field", "network.mode")
	}
	return nil
}

// networks are those that sandboxes can have.
var networks = []cove.NetworkMode{cove.NetworkNone}

// way is how a sandbox gets out: none does.
type way struct{ gate io.Closer }

func (*way) part() {}

func (*way) note(cove.Network) *wayNote { return nil }

// wayNote is what the next process must know of a way out.
type wayNote struct{}

func (s *sandbox) rejoin(*wayNote) {}

func (s *sandbox) leave(context.Context, cove.Network) error { return nil }

func (s *sandbox) reach(face cove.Sandbox) cove.Sandbox { return face }
