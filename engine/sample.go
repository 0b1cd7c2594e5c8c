package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
)

// taskUsage is the task that asks sandboxes what they use.
const taskUsage = "usage"

// How sandboxes are asked what they use. Nobody is asked unless somebody looks at the
// numbers, and a round takes a small part of the time only, however many there are
// and however slowly they answer.
const (
	sampleGap   = 2 * time.Second        // between two rounds, at least
	sampleShare = 20                     // and this many times as long as the last one took
	sampleTime  = 500 * time.Millisecond // in which a round begins to ask, and for each answer; who was not asked is first in the next
	sampleWidth = 4                      // sandboxes of one provider that are asked at once
	sampleLasts = 2 * time.Minute        // how long an answer counts
)

// sample is what a sandbox used when it was asked.
type sample struct {
	asked  time.Time // zero: never
	at     time.Time // when it answered; zero: never
	cpu    time.Duration
	memory cove.Bytes
	busy   float64 // CPU time in a second, since the answer before
}

// sampling says when there is to be a round.
type sampling struct {
	mu     sync.Mutex
	wanted bool      // guarded by mu: somebody looked since the last round
	next   time.Time // guarded by mu: when there may be another one
}

// wantSamples is told that somebody looks at the numbers.
func (e *Engine) wantSamples() {
	s := &e.samples
	s.mu.Lock()
	s.wanted = true
	due := !time.Now().Before(s.next)
	s.mu.Unlock()
	if due {
		e.tasks.Kick(taskUsage)
	}
}

// begin reports whether a round is due, and that it is under way then.
func (s *sampling) begin(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.wanted || now.Before(s.next) {
		return false
	}
	s.wanted = false
	return true
}

func (s *sampling) end(began, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = now.Add(max(sampleGap, sampleShare*now.Sub(began)))
}

// sampleUsage asks sandboxes what they use, if somebody wants to know. One provider
// that is slow keeps nobody waiting who asks another one.
func (e *Engine) sampleUsage(ctx context.Context) (int64, error) {
	began := time.Now()
	if !e.samples.begin(began) {
		return 0, nil
	}
	defer func() { e.samples.end(began, time.Now()) }()
	more := func() bool { return ctx.Err() == nil && time.Since(began) < sampleTime }
	var answers atomic.Int64
	var all sync.WaitGroup
	for _, leases := range e.toSample() {
		var next atomic.Int64
		for range min(sampleWidth, len(leases)) {
			all.Go(func() {
				for i := next.Add(1) - 1; i < int64(len(leases)) && more(); i = next.Add(1) - 1 {
					if leases[i].ask(ctx) {
						answers.Add(1)
					}
				}
			})
		}
	}
	all.Wait()
	return answers.Load(), nil
}

// toSample returns the leases by provider, those first that were not asked for the
// longest time.
func (e *Engine) toSample() map[string][]*lease {
	asked := map[*lease]time.Time{}
	by := map[string][]*lease{}
	for _, l := range e.snapshotLeases() {
		l.mu.Lock()
		provider, there := l.rec.Provider, l.sandbox != nil
		asked[l] = l.sample.asked
		l.mu.Unlock()
		if there {
			by[provider] = append(by[provider], l)
		}
	}
	for _, leases := range by {
		slices.SortFunc(leases, func(a, b *lease) int {
			return cmp.Or(asked[a].Compare(asked[b]), cmp.Compare(a.id, b.id))
		})
	}
	return by
}

// ask has the sandbox say what it uses, and reports whether it did. What it last said
// goes on to count for a while if it does not.
func (l *lease) ask(ctx context.Context) bool {
	l.mu.Lock()
	sandbox, cpus, asked := l.sandbox, l.rec.Spec.Resources.CPUs, time.Now()
	l.sample.asked = asked
	l.mu.Unlock()
	if sandbox == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, sampleTime) // its own: who comes late in a round has as long as the first
	defer cancel()
	u, err := sandbox.Usage(ctx)
	now := time.Now()
	if err != nil || ctx.Err() != nil { // what was cut short may lack a part
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sandbox == nil || l.sample.asked != asked {
		return false // it went meanwhile, and there may be another one
	}
	s := &l.sample
	if wall := now.Sub(s.at); !s.at.IsZero() {
		if wall <= 0 {
			return true
		}
		s.busy = max(0, (u.CPU-s.cpu).Seconds()) / wall.Seconds()
		if cpus > 0 { // what is counted inside can be forged
			s.busy = min(s.busy, cpus*float64(wall+saved)/float64(wall))
		}
	}
	s.at, s.cpu, s.memory = now, u.CPU, max(0, u.Memory)
	return true
}

// addSample adds what the sandbox used lately, if it said so.
func (l *lease) addSample(to *cove.ProviderShare, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sample
	if l.sandbox == nil || s.at.IsZero() || now.Sub(s.at) >= sampleLasts {
		return
	}
	to.UsedMemory += s.memory
	to.UsedCPUs += s.busy
	if to.Measured++; to.MeasuredAt.IsZero() || s.at.Before(to.MeasuredAt) {
		to.MeasuredAt = s.at
	}
}
