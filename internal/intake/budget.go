package intake

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
)

// Bounds on the bodies in flight. The share of a key has room for the largest body
// and what the key does beside it, and is a quarter of the whole.
const (
	serverBytes = 40 << 20
	keyBytes    = serverBytes / 4

	// LargestJSON is the most that any route takes as JSON.
	LargestJSON = 8 << 20

	// Beginnings of bodies have room when large ones fill the server, so that ordinary
	// requests go on.
	beginning  = 64 << 10
	spareBytes = serverBytes / 5

	waitTime = 5 * time.Second // for bodies of other keys to be over
)

// Budget bounds the bytes of request bodies that are in memory at once. It is safe
// for concurrent use.
type Budget struct {
	server, key, spare int64
	wait               time.Duration

	mu    sync.Mutex
	used  int64            // guarded by mu
	keys  map[string]int64 // what each key uses of it; guarded by mu
	freed chan struct{}    // closed when bytes are given back; guarded by mu
}

// New returns the budget of one server.
func New() *Budget {
	return &Budget{server: serverBytes, key: keyBytes, spare: spareBytes, wait: waitTime, keys: map[string]int64{}, freed: make(chan struct{})}
}

// Body returns the body of one request of p, with nothing charged yet.
func (b *Budget) Body(p cove.Principal) *Body {
	body := &Body{budget: b, key: p.Tenant + "/" + p.Name}
	body.uses.Store(1)
	return body
}

// take charges a key with n bytes. It waits where bodies of other keys fill the
// server; early says that the bytes are the beginning of a body.
func (b *Budget) take(ctx context.Context, key string, n int64, early bool) error {
	var late <-chan time.Time
	for {
		freed, err := b.tryTake(key, n, early)
		if freed == nil {
			return err
		}
		if late == nil {
			timer := time.NewTimer(b.wait)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-late:
			return tooMuch("the request bodies of all keys that are under way hold %s, the most that this server keeps in memory", b.server)
		}
	}
}

// tryTake charges a key with n bytes. Where the server has no room, it returns what
// is closed when there may be some.
func (b *Budget) tryTake(key string, n int64, early bool) (freed <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	most := b.server
	if early {
		most += b.spare
	}
	switch {
	case b.keys[key]+n > b.key:
		return nil, tooMuch("the request bodies of this key that are under way hold %s, the most that one key may keep in memory", b.key)
	case b.used+n > most:
		return b.freed, nil
	}
	b.used += n
	b.keys[key] += n
	return nil, nil
}

func (b *Budget) give(key string, n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.keys[key] -= n; b.keys[key] == 0 {
		delete(b.keys, key)
	}
	close(b.freed)
	b.freed = make(chan struct{})
}

func tooMuch(format string, bound int64) error {
	return cove.Errorf(cove.Exhausted, format, cove.Bytes(bound)).Reason(cove.ReasonRateLimited).With("retry_after", 1).
		Remedy("send it again when other requests are over, fewer at a time, and large content as a file")
}

// Body is what one request holds of a budget. It is safe for concurrent use.
type Body struct {
	budget *Budget
	key    string
	taken  atomic.Int64
	uses   atomic.Int32
}

// Take charges the body with n bytes that arrived. A key that is over its share is
// refused at once, a server without room after a short wait; both are Exhausted.
func (b *Body) Take(ctx context.Context, n int) error {
	err := b.budget.take(ctx, b.key, int64(n), b.taken.Load()+int64(n) <= beginning)
	if err == nil {
		b.taken.Add(int64(n))
	}
	return err
}

// Hold keeps the body charged until one more Free: for a call that may outlive its
// request.
func (b *Body) Hold() { b.uses.Add(1) }

// Free gives back what the body was charged with, once it is freed as often as it
// is held.
func (b *Body) Free() {
	if b.uses.Add(-1) == 0 {
		b.budget.give(b.key, b.taken.Swap(0))
	}
}
