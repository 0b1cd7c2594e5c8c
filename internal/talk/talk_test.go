package talk_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/talk"
)

func TestInbox(t *testing.T) {
	i := talk.NewInbox()
	if !i.Offer([]byte("one")) || !i.Offer([]byte("two")) || i.Offer([]byte("three")) {
		t.Fatal("there is room for two")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := i.Send(ctx, []byte("three")); !errors.Is(err, context.Canceled) {
		t.Errorf("who leaves: %v", err)
	}
	b := make([]byte, 2)
	for _, want := range []string{"on", "e", "tw", "o"} {
		if n, err := i.Read(b); string(b[:n]) != want || err != nil {
			t.Errorf("read %q, %v; want %q", b[:n], err, want)
		}
	}
	i.Close()
	i.Close()
	if n, err := i.Read(b); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %d, %v", n, err)
	}
}

func TestInboxWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := talk.NewInbox()
		for range 2 {
			i.Offer([]byte("x"))
		}
		sent := make(chan error)
		go func() { sent <- i.Send(t.Context(), []byte("y")) }()
		synctest.Wait()
		if _, err := i.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if err := <-sent; err != nil {
			t.Errorf("there was room: %v", err)
		}
		go func() { sent <- i.Send(t.Context(), []byte("z")) }()
		synctest.Wait()
		i.Close()
		if err := <-sent; cove.CodeOf(err) != cove.Unavailable {
			t.Errorf("nobody reads: %v", err)
		}
	})
}

func TestHead(t *testing.T) {
	h := talk.NewHead(5)
	for _, text := range []string{"abc", "def", "ghi"} {
		if n, err := h.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if h.String() != "abcde" {
		t.Errorf("%q", h)
	}
}
