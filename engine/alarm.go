package engine

import (
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// alarm has the expiry task look when the next fixed end comes, and not only
// when it is its turn.
type alarm struct {
	mu    sync.Mutex
	ring  func() // nil until the tasks run, and after they stopped
	timer *time.Timer
	at    time.Time // when the timer rings; zero for never
}

// start lets the alarm ring.
func (a *alarm) start(ring func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ring = ring
}

// stop silences the alarm for good.
func (a *alarm) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ring = nil
	if a.timer != nil {
		a.timer.Stop()
	}
}

// set has the alarm ring at a time, unless it rings earlier.
func (a *alarm) set(at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ring == nil || !a.at.IsZero() && !at.Before(a.at) {
		return
	}
	if a.timer != nil {
		a.timer.Stop()
	}
	a.at = at
	a.timer = time.AfterFunc(time.Until(at), func() { a.rang(at) })
}

// rang passes the ring on, if it is the one that is waited for.
func (a *alarm) rang(at time.Time) {
	a.mu.Lock()
	ring := a.ring
	if a.at.Equal(at) {
		a.at = time.Time{}
	}
	a.mu.Unlock()
	if ring != nil {
		ring()
	}
}

// alarmFor sets the alarm for the end of a lease, if that is fixed.
func (e *Engine) alarmFor(l *lease) {
	if at, ok := l.fixedEnd(); ok {
		e.alarm.set(at)
	}
}

// soon is when a session is looked at again that somebody was changing when its
// fixed end came.
const soon = time.Second

// alarmAgain is alarmFor after a look at the lease. What went wrong then waits for
// the next turn of the task.
func (e *Engine) alarmAgain(l *lease, failed error) {
	at, ok := l.fixedEnd()
	now := time.Now()
	switch {
	case !ok:
	case at.After(now):
		e.alarm.set(at)
	case failed == nil:
		e.alarm.set(now.Add(soon))
	}
}

// fixedEnd is when a lease's time is up whatever happens in it.
func (l *lease) fixedEnd() (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.rec.State {
	case cove.Running, cove.Paused, cove.Stopped:
		return l.deadline(), l.rec.Spec.FixedEnd
	case cove.Creating, cove.Failed, cove.Ended:
	}
	return time.Time{}, false
}
