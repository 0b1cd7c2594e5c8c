//go:build !lean

package daemon

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// traffic knows whether anybody talks to a server, and since when nobody does.
type traffic struct {
	mu     sync.Mutex
	active int       // guarded by mu
	since  time.Time // guarded by mu; of the last change of active
}

func newTraffic() *traffic { return &traffic{since: time.Now()} }

func (t *traffic) change(by int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active += by
	t.since = time.Now()
}

// idle returns for how long nobody has talked to the server.
func (t *traffic) idle() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.active > 0 {
		return 0
	}
	return time.Since(t.since)
}

// watch counts the requests to h.
func (t *traffic) watch(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.change(1)
		defer t.change(-1)
		h.ServeHTTP(w, r)
	})
}

// awaitIdle returns true when nobody has talked to the server for d while it
// had nothing alive, and false when ctx ends. A session with a sandbox keeps the
// server, also where its programs could go on without one: nobody else would end
// it when its time is up.
func (t *traffic) awaitIdle(ctx context.Context, d time.Duration, alive func(context.Context) bool) bool {
	for {
		left := d - t.idle()
		if left <= 0 && !alive(ctx) {
			return true
		}
		if left <= 0 {
			left = d // sessions end by themselves: look again later
		}
		if pause(ctx, left) != nil {
			return false
		}
	}
}
