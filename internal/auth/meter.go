package auth

import (
	"math"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// maxMeters is when meters that say nothing any more are thrown away. Only
// keys of the store get one, so the store bounds the rest.
const maxMeters = 1024

// meter is what is known of one key's requests.
type meter struct {
	tokens float64 // requests that may be made at once, as of seen
	rate   float64
	seen   time.Time
	active int
}

// burst is how many requests may come at once at a rate: those of one second,
// and at least one.
func burst(rate float64) float64 { return math.Max(1, rate) }

// refill brings m to now under a rate, which may have changed since.
func (m *meter) refill(rate float64, now time.Time) {
	if m.seen.IsZero() || m.rate == 0 {
		m.tokens = burst(rate)
	}
	m.tokens = math.Min(burst(rate), m.tokens+now.Sub(m.seen).Seconds()*rate)
	m.rate, m.seen = rate, now
}

// idle reports whether a fresh meter would say the same.
func (m *meter) idle(now time.Time) bool {
	return m.active == 0 && (m.rate == 0 || m.tokens+now.Sub(m.seen).Seconds()*m.rate >= burst(m.rate))
}

// admit counts a request of key, or refuses it.
func (k *Keyring) admit(key *cove.Key) (done func(), err error) {
	rate, most := key.Limits.RatePerSecond, key.Limits.Concurrent
	if rate <= 0 && most <= 0 {
		return func() {}, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	m := k.meterOf(key.ID, now)
	m.refill(max(rate, 0), now)
	if most > 0 && m.active >= most {
		return nil, limited(time.Second, "the key has %d requests under way, the most it may have", most)
	}
	if rate > 0 {
		if m.tokens < 1 {
			return nil, limited(time.Duration((1-m.tokens)/rate*float64(time.Second)), "the key is over its rate of %g requests a second", rate)
		}
		m.tokens--
	}
	m.active++
	return sync.OnceFunc(func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		m.active--
	}), nil
}

// meterOf finds or makes the meter of a key. mu is held.
func (k *Keyring) meterOf(id cove.ID, now time.Time) *meter {
	if m, ok := k.meters[id]; ok {
		return m
	}
	if len(k.meters) >= maxMeters {
		for other, m := range k.meters {
			if m.idle(now) {
				delete(k.meters, other)
			}
		}
	}
	m := &meter{}
	k.meters[id] = m
	return m
}

func limited(wait time.Duration, format string, args ...any) error {
	seconds := max(1, int(math.Ceil(math.Min(wait.Seconds(), 3600))))
	return cove.Errorf(cove.Exhausted, format, args...).Reason(cove.ReasonRateLimited).With("retry_after", seconds).
		Remedy("wait %d s and send it again", seconds)
}
