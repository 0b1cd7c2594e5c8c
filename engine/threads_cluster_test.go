package engine_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/store/redis"
	"github.com/cove-sandbox/cove/store/redis/redistest"
)

// TestChatsInTurnAtAllNodes: one message at a time is answered in a thread, whichever
// nodes get them, and each answer knows all before it. What the thread is called does
// not leave the node.
func TestChatsInTurnAtAllNodes(t *testing.T) {
	server := redistest.Start(t)
	var busy, most, wrong atomic.Int64
	var nodes []cove.Platform
	const secret = "what-nobody-else-must-read"
	for _, name := range []string{"one", "two", "three"} {
		d, err := redis.Open(t.Context(), redis.Config{URL: server.URL(), Node: name, Instance: name, Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		if _, err := d.Beat(t.Context(), cove.Node{ID: name, Address: "127.0.0.1:1"}); err != nil {
			t.Fatal(err)
		}
		w := newWorld(t)
		nodes = append(nodes, w.open(func(c *engine.Config) {
			c.Store, c.Directory, c.Node = d, d, name
			c.Responder = responder(func(_ context.Context, _ cove.Platform, history []*cove.Message, _ cove.ChatRequest) (*cove.ChatAnswer, error) {
				most.Store(max(most.Load(), busy.Add(1)))
				defer busy.Add(-1)
				if len(history)%2 != 0 {
					wrong.Add(1)
				}
				if strings.Contains(server.Do("KEYS", "*lock*"), secret) {
					t.Error("the name of a lock has the name of a thread in it")
				}
				return &cove.ChatAnswer{Message: cove.Message{Text: "ok"}}, nil
			})
		}).As(boss))
	}
	var all sync.WaitGroup
	for _, p := range nodes {
		for range 3 {
			all.Go(func() {
				if _, err := p.Chats().Send(t.Context(), cove.ChatRequest{Thread: secret, Message: "go"}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	if got := said(t, nodes[0], secret); most.Load() != 1 || wrong.Load() != 0 || len(got) != 18 {
		t.Errorf("%d at once, %d answers that knew half a turn, %d messages", most.Load(), wrong.Load(), len(got))
	}
	if err := nodes[1].Chats().Delete(t.Context(), secret); err != nil || len(said(t, nodes[2], secret)) != 0 {
		t.Errorf("deleted at another node: %v", err)
	}
}
