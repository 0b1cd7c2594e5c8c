package rootfs

import (
	"sync"
	"time"
)

// viewTime is how long a look at the host counts: sandboxes are made faster than
// packages are installed, and the look reads the list of all of them.
const viewTime = 5 * time.Second

// hostView is what the host has, as it was a moment ago.
type hostView struct {
	mu       sync.Mutex
	at       time.Time
	facts    string
	builtins map[string]Entry
}

// look renews the view if it is old.
func (v *hostView) look(top string) {
	if !v.at.IsZero() && time.Since(v.at) < viewTime {
		return
	}
	v.at, v.facts, v.builtins = time.Now(), Facts(top), map[string]Entry{}
	for _, name := range Builtin() {
		v.builtins[name] = builtin(top, name)
	}
}

// facts is [Facts] of the host below the store.
func (s *Store) facts() string {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	s.host.look(s.cfg.Top)
	return s.host.facts
}

// builtin is a builtin template as far as nobody built it.
func (s *Store) builtin(name string) (Entry, bool) {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	s.host.look(s.cfg.Top)
	e, ok := s.host.builtins[name]
	return e, ok
}
