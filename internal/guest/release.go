//go:build linux

package guest

import (
	"context"
	"maps"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// Release gives up the names of all programs that are kept, which go on. It is for
// a sandbox that is a copy of another: the names were that one's, and whoever has
// this one may use them again. Recorded programs that were marked keep theirs: whoever
// has this one may take them up by their notes.
func (c *Conn) Release(ctx context.Context) error {
	c.mu.Lock()
	all := maps.Clone(c.kept)
	c.mu.Unlock()
	for name, k := range all {
		a, err := c.call(ctx, protocol.KindForget, protocol.Poke{Program: k.id, Signal: protocol.GoesOn}.Encode())
		if err == nil && a.Reason == protocol.ReasonBusy {
			continue
		}
		if err == nil {
			err = fault(a.Reply, "")
		}
		if err != nil {
			return err
		}
		c.mu.Lock()
		delete(c.kept, name)
		c.mu.Unlock()
	}
	return nil
}
