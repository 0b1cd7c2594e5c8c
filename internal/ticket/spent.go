package ticket

import (
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// maxSpent bounds how many tickets are remembered as used. Those that have
// expired are forgotten, so it is also a bound on sign-ins in a while.
const maxSpent = 10_000

// spent remembers the tickets that are good no more although their time is not up.
type spent struct {
	mu    sync.Mutex
	until map[string]time.Time // guarded by mu; by nonce
}

// add notes a ticket as used, and reports whether it was not before.
func (s *spent) add(t ticket) (first bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.has(t.nonce) {
		return false, nil
	}
	if len(s.until) >= maxSpent {
		s.tidy()
	}
	if len(s.until) >= maxSpent {
		return false, cove.Errorf(cove.Exhausted, "too many browsers have signed in or out in a while").Reason(cove.ReasonRateLimited).
			Remedy("try again later")
	}
	if s.until == nil {
		s.until = map[string]time.Time{}
	}
	s.until[t.nonce] = t.grant.ExpiresAt
	return true, nil
}

func (s *spent) contains(t ticket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.has(t.nonce)
}

// has is contains. mu is held.
func (s *spent) has(nonce string) bool {
	_, ok := s.until[nonce]
	return ok
}

// tidy forgets what has expired. mu is held.
func (s *spent) tidy() {
	now := time.Now()
	for nonce, until := range s.until {
		if !now.Before(until) {
			delete(s.until, nonce)
		}
	}
}
