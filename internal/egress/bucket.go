package egress

import (
	"sync"
	"time"
)

// bucket counts what may happen in a second. It holds at most what two seconds
// give. Methods are safe for concurrent use.
type bucket struct {
	mu    sync.Mutex
	level float64 // guarded by mu; below zero it is owed
	at    time.Time
	said  time.Time // when somebody was last told that it is empty
}

// refill brings the level up to now. Callers hold mu.
func (b *bucket) refill(now time.Time, rate float64) {
	if b.at.IsZero() {
		b.level = 2 * rate
	} else {
		b.level = min(b.level+now.Sub(b.at).Seconds()*rate, 2*rate)
	}
	b.at = now
}

// take takes one, if there is one. Where there is none, tell is true once in a
// second: a flood is worth a line, not a flood of lines.
func (b *bucket) take(rate int) (ok, tell bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.refill(now, float64(rate))
	if b.level >= 1 {
		b.level--
		return true, false
	}
	if now.Sub(b.said) < time.Second {
		return false, false
	}
	b.said = now
	return false, true
}

// spend takes n, and returns how long to wait until that is earned.
func (b *bucket) spend(n, rate int64) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(time.Now(), float64(rate))
	b.level -= float64(n)
	if b.level >= 0 {
		return 0
	}
	return time.Duration(-b.level / float64(rate) * float64(time.Second))
}
