//go:build linux

package protocol_test

import (
	"errors"
	"io"
	"testing"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// TestReset closes one end of a link that has unread messages: the other end gets
// the messages that were sent before, and then the end.
func TestReset(t *testing.T) {
	for name, from := range map[string]int{"agent": 1, "host": 0} {
		t.Run(name, func(t *testing.T) {
			link := links(t)["descriptors"]
			peer, other := link[from], link[1-from]
			if err := other.Send(&protocol.Message{Kind: protocol.KindKill, ID: 1}); err != nil {
				t.Fatal(err)
			}
			for id := range uint64(2) {
				if err := peer.Send(&protocol.Message{Kind: protocol.KindReply, ID: id}); err != nil {
					t.Fatal(err)
				}
			}
			if err := peer.Leave(); err != nil {
				t.Fatal(err)
			}
			for id := range uint64(2) {
				if m, err := other.Receive(); err != nil || m.ID != id {
					t.Fatalf("message %d is %+v, %v", id, m, err)
				}
			}
			if _, err := other.Receive(); !errors.Is(err, io.EOF) {
				t.Errorf("after the messages: %v", err)
			}
		})
	}
}
