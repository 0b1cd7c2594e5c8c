//go:build linux

package protocol

import (
	"sync"
	"time"
)

// still is what a host knows of an agent that cannot answer, because its sandbox is
// paused.
type still struct {
	mu     sync.Mutex
	paused bool
	since  time.Time // it runs again
}

// Still says that the agent is stopped, or not any more. While it is, nobody is
// impatient with it.
func (s *still) Still(paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused, s.since = paused, time.Now()
}

// rest is how long the agent may still take.
func (s *still) rest() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused {
		return patience
	}
	return patience - time.Since(s.since)
}

// alarm goes off when an agent leaves a message lying for too long.
type alarm struct {
	mu        sync.Mutex
	timer     *time.Timer
	off, rang bool
}

// alarm calls end once patience is over.
func (s *still) alarm(end func()) *alarm {
	a := &alarm{}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.timer = time.AfterFunc(patience, func() {
		if a.rings(s.rest()) {
			end()
		}
	})
	return a
}

// rings reports whether it goes off now, and not later.
func (a *alarm) rings(rest time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.off:
	case rest > 0:
		a.timer.Reset(rest)
	default:
		a.rang = true
	}
	return a.rang
}

// stop ends it, and reports whether it went off.
func (a *alarm) stop() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.off = true
	a.timer.Stop()
	return a.rang
}
