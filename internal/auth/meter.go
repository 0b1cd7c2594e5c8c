package auth

import (
	"fmt"
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

// share is what of a key's bounds is this server's own.
type share struct {
	rate  float64
	most  int
	nodes int
}

// shareOf divides the bounds of a key between the nodes that there are now. None has
// less than one request at a time.
func (k *Keyring) shareOf(key *cove.Key) share {
	n := max(1, k.nodes())
	return share{rate: max(key.Limits.RatePerSecond, 0) / float64(n), most: (max(key.Limits.Concurrent, 0) + n - 1) / n, nodes: n}
}

// words say that a bound is divided, where it is.
func (s share) words() string {
	if s.nodes == 1 {
		return ""
	}
	return fmt.Sprintf("; it is divided between %d nodes", s.nodes)
}

// admit counts a request of key, or refuses it.
func (k *Keyring) admit(key *cove.Key) (done func(), err error) {
	own := k.shareOf(key)
	if own.rate <= 0 && own.most <= 0 {
		return func() {}, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	m := k.meterOf(key.ID, now)
	m.refill(own.rate, now)
	if own.most > 0 && m.active >= own.most {
		return nil, limited(time.Second, "the key has %d requests under way, the most it may have%s", own.most, own.words())
	}
	if own.rate > 0 {
		if m.tokens < 1 {
			return nil, limited(time.Duration((1-m.tokens)/own.rate*float64(time.Second)), "the key is over its rate of %g requests a second%s", key.Limits.RatePerSecond, own.words())
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
