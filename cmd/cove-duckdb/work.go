//go:build linux

package main

import (
	"sync"
	"time"

	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// work is the request that is served, for those who want to stop it.
type work struct {
	mu      sync.Mutex
	id      uint64 // 0: none
	last    uint64 // the id of the latest
	conn    interrupter
	stopped bool
	// early are requests to be stopped that have not begun.
	early map[uint64]bool
}

// interrupter is a connection, as much as is needed of it.
type interrupter interface{ Interrupt() }

// begin says what is served, and reports whether it may go on.
func (w *work) begin(id uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.id, w.last, w.conn = id, id, nil
	w.stopped = w.early[id]
	for old := range w.early {
		if old <= id {
			delete(w.early, old)
		}
	}
	return !w.stopped
}

// on says where it runs now.
func (w *work) on(conn interrupter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn = conn
}

// end says that it is over, and reports whether it had been stopped.
func (w *work) end() (stopped bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stopped = w.stopped
	w.id, w.conn, w.stopped = 0, nil, false
	return stopped
}

// cut reports whether the request has been stopped, for work between statements.
func (w *work) cut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopped
}

// stop ends the request with this id if it is served now, or when it begins.
func (w *work) stop(id uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case id == w.id && !w.stopped:
		w.stopped = true
		go w.interrupt(id)
	case id > w.last && len(w.early) <= ask.MaxWaiting:
		if w.early == nil {
			w.early = map[uint64]bool{}
		}
		w.early[id] = true
	default:
	}
}

// interrupt asks the engine again and again: it forgets what it was asked when its
// next statement starts.
func (w *work) interrupt(id uint64) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		w.mu.Lock()
		over, conn := w.id != id, w.conn
		if !over && conn != nil {
			conn.Interrupt()
		}
		w.mu.Unlock()
		if over {
			return
		}
		<-tick.C
	}
}
