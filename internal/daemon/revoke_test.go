package daemon_test

import (
	"context"
	"errors"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// TestRevocationEndsStreamsAtEveryDoor, and leaves those alone whose caller is
// known without a key.
func TestRevocationEndsStreamsAtEveryDoor(t *testing.T) {
	r, end := serve(t, settings(t), daemon.Options{})
	defer end()
	socket := "unix://" + r.Socket
	me := dial(t, socket, "")
	key, secret, err := me.Admin().CreateKey(t.Context(), cove.KeyRequest{Scopes: []cove.Scope{cove.ScopeAll}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	follow := func(c *client.Client) <-chan error {
		begun, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			first := true
			for _, err := range c.Admin().Events(ctx, cove.EventFilter{Follow: true}) {
				if err != nil {
					ended <- err
					return
				}
				if first {
					close(begun)
				}
				first = false
			}
			ended <- nil
		}()
		select {
		case <-begun:
		case err := <-ended:
			t.Fatal(err)
		}
		return ended
	}
	mine, byAddress, bySocket := follow(me), follow(dial(t, r.URL, secret)), follow(dial(t, socket, secret))
	if err := me.Admin().RevokeKey(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	for _, ended := range []<-chan error{byAddress, bySocket} {
		if err := <-ended; !errors.Is(err, cove.Unauthenticated) {
			t.Errorf("it ended with %v", err)
		}
	}
	select {
	case err := <-mine:
		t.Errorf("the stream without a key ended: %v", err)
	default:
	}
	cancel()
	<-mine

	// A key may end itself, and is told that it did.
	key, secret, err = me.Admin().CreateKey(t.Context(), cove.KeyRequest{Scopes: []cove.Scope{cove.ScopeAdmin}})
	if err != nil {
		t.Fatal(err)
	}
	last := dial(t, r.URL, secret)
	if err := last.Admin().RevokeKey(t.Context(), key.ID); err != nil {
		t.Error(err)
	}
	if err := last.Admin().RevokeKey(t.Context(), key.ID); !errors.Is(err, cove.Unauthenticated) {
		t.Errorf("%v", err)
	}
}
