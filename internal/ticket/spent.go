package ticket

import (
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// maxSpent bounds how many used tickets of one principal are remembered. Those
// that have expired are forgotten, so it is also a bound on sign-ins in a while.
// It is for each, so that nobody can keep others from signing in or out; there
// are no more principals than keys in the store.
const maxSpent = 1000

// spent remembers the tickets that are good no more although their time is not up.
type spent struct {
	mu    sync.Mutex
	until map[string]map[string]time.Time // guarded by mu; by principal and nonce
}

// add notes a ticket as used, and reports whether it was not before.
func (s *spent) add(t ticket) (first bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.has(t) {
		return false, nil
	}
	who := t.grant.Principal
	if len(s.until[who]) >= maxSpent {
		s.tidy()
	}
	if len(s.until[who]) >= maxSpent {
		return false, cove.Errorf(cove.Exhausted, "too many browsers have signed in or out with this key in a while").Reason(cove.ReasonRateLimited).
			Remedy("try again later")
	}
	s.hold(t)
	return true, nil
}

// remove forgets a ticket.
func (s *spent) remove(t ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.until[t.grant.Principal], t.nonce)
}

// put notes a ticket that was used before this process.
func (s *spent) put(t ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold(t)
}

// hold notes a ticket. mu is held.
func (s *spent) hold(t ticket) {
	who := t.grant.Principal
	if s.until == nil {
		s.until = map[string]map[string]time.Time{}
	}
	if s.until[who] == nil {
		s.until[who] = map[string]time.Time{}
	}
	s.until[who][t.nonce] = t.grant.ExpiresAt
}

func (s *spent) contains(t ticket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.has(t)
}

// has is contains. mu is held.
func (s *spent) has(t ticket) bool {
	_, ok := s.until[t.grant.Principal][t.nonce]
	return ok
}

// tidy forgets what has expired. mu is held.
func (s *spent) tidy() {
	now := time.Now()
	for who, used := range s.until {
		for nonce, until := range used {
			if !now.Before(until) {
				delete(used, nonce)
			}
		}
		if len(used) == 0 {
			delete(s.until, who)
		}
	}
}
