package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"github.com/cove-sandbox/cove"
)

// maxChats is how many messages are answered or wait for it; more are Exhausted.
const maxChats = 64

// threadKey names a thread. One without a name is new, and nobody else's yet.
type threadKey struct{ tenant, owner, thread string }

// threads lets one message at a time be answered in each thread, so that every answer
// knows the one before it.
type threads struct {
	mu   sync.Mutex
	n    int                         // guarded by mu; who holds one or waits for one
	busy map[threadKey]chan struct{} // guarded by mu; closed when the thread is free
}

// hold waits until a thread is free and takes it.
func (t *threads) hold(ctx context.Context, k threadKey) (release func(), err error) {
	t.mu.Lock()
	if t.n >= maxChats {
		t.mu.Unlock()
		return nil, cove.Errorf(cove.Exhausted, "%d messages are being answered already", maxChats).Reason(cove.ReasonCapacity).With("retry_after", 1)
	}
	t.n++
	for k.thread != "" && t.busy[k] != nil {
		free := t.busy[k]
		t.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			t.mu.Lock()
			t.n--
			t.mu.Unlock()
			return nil, ctx.Err()
		}
		t.mu.Lock()
	}
	defer t.mu.Unlock()
	mine := make(chan struct{})
	if k.thread != "" {
		if t.busy == nil {
			t.busy = map[threadKey]chan struct{}{}
		}
		t.busy[k] = mine
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.n--
		if k.thread != "" {
			delete(t.busy, k)
		}
		close(mine)
	}, nil
}

// hold is [threads.hold] among all nodes: a message of the same thread may be answered
// at another one.
func (c chats) hold(ctx context.Context, thread string) (release func(), err error) {
	e, k := c.v.e, c.key(thread)
	here, err := e.threads.hold(ctx, k)
	if err != nil || !e.shared() || thread == "" {
		return here, err
	}
	everywhere, err := e.cfg.Directory.Lock(ctx, k.lock())
	if err != nil {
		here()
		return nil, err
	}
	return func() { everywhere(); here() }, nil
}

// lock is the name of a thread in a cluster. What callers called it stays with us.
func (k threadKey) lock() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %d %s %s", len(k.tenant), k.tenant, len(k.owner), k.owner, k.thread))
	return "chat:" + hex.EncodeToString(sum[:])
}

// inTurn returns ids for a message and its answer that sort after all of the thread.
// The answer's is the one that it is to be found by, unless the clock went back or
// stood still since the last message.
func inTurn(history []*cove.Message, id cove.ID) (asked, said cove.ID) {
	asked = neighbour(id, -1)
	if len(history) == 0 || asked > history[len(history)-1].ID {
		return asked, id
	}
	asked = neighbour(history[len(history)-1].ID, 1)
	return asked, neighbour(asked, 1)
}

// neighbour is the id before or after another. The last digit of an id is not a whole
// one, so that it is the one before that which counts.
func neighbour(id cove.ID, step int) cove.ID {
	const digits = "0123456789abcdefghjkmnpqrstvwxyz"
	b := []byte(id)
	for i := len(b) - 2; i >= 0; i-- {
		at := strings.IndexByte(digits, b[i]) + step
		if at >= 0 && at < len(digits) {
			b[i] = digits[at]
			break
		}
		b[i] = digits[(at+len(digits))%len(digits)]
	}
	return cove.ID(b)
}
