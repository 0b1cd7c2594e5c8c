package clustersim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/cove-sandbox/cove"
)

// arrival is somebody who wants a session.
type arrival struct {
	at      time.Duration
	length  time.Duration // how long the session lasts, if nothing happens to it
	memory  cove.Bytes
	movable bool
}

// source has arrivals in the order of their times.
type source interface {
	next() (arrival, bool)
}

// flavors are those that every server has, with the share of sessions that take
// them. The largest is the last.
var flavors = []struct {
	memory cove.Bytes
	share  float64
}{{cove.GiB, 0.75}, {2 * cove.GiB, 0.20}, {4 * cove.GiB, 0.05}}

func meanMemory() float64 {
	var mean float64
	for _, f := range flavors {
		mean += float64(f.memory) * f.share
	}
	return mean
}

func flavorAt(u float64) cove.Bytes {
	for _, f := range flavors {
		if u -= f.share; u < 0 {
			return f.memory
		}
	}
	return flavors[len(flavors)-1].memory
}

// The shape of a day.
const (
	busiest     = 14 * time.Hour // the time of day
	quietest    = 0.35           // of the rate at the busiest time
	longest     = 8 * time.Hour  // of sessions
	burstEvery  = 30 * time.Minute
	burstWithin = 10 * time.Second
	burstShare  = 0.02 // of all sandboxes, that one tenant wants at once
)

// day makes arrivals: a stream that follows the time of day, and bursts, in each
// of which one tenant wants many sandboxes of the same flavor.
type day struct {
	cfg  Config
	rng  *rand.Rand
	rate float64 // arrivals in a second at the busiest time

	at    time.Duration // of the stream
	burst time.Duration // when the next one begins
	queue []arrival     // of the burst that is under way, by time
	held  *arrival      // of the stream, later than the burst
}

func newDay(cfg Config) *day {
	d := &day{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 1))} //nolint:gosec // a day that can be played again
	d.rate = float64(cfg.Sandboxes) / meanLength(cfg).Seconds()
	d.burst = d.exponential(burstEvery)
	return d
}

// meanLength is that of the log-normal distribution. What is cut off at the
// longest is too little to matter.
func meanLength(cfg Config) time.Duration {
	return time.Duration(float64(cfg.Median) * math.Exp(cfg.Sigma*cfg.Sigma/2))
}

func (d *day) exponential(mean time.Duration) time.Duration {
	return time.Duration(d.rng.ExpFloat64() * float64(mean))
}

func (d *day) next() (arrival, bool) {
	if d.held == nil {
		a := d.stream()
		d.held = &a
	}
	if len(d.queue) == 0 && d.burst <= d.held.at {
		d.startBurst()
	}
	a := *d.held
	if len(d.queue) > 0 && d.queue[0].at <= a.at {
		a = d.queue[0]
		d.queue = d.queue[1:]
	} else {
		d.held = nil
	}
	return a, a.at < d.cfg.Length
}

// stream returns the next arrival outside of bursts: candidates come at the
// highest rate, and are taken as often as the time of day has it.
func (d *day) stream() arrival {
	for {
		d.at += d.exponential(time.Duration(float64(time.Second) / d.rate))
		if d.at >= d.cfg.Length || d.rng.Float64() < rhythm(d.at) {
			return d.arrival(d.at, flavorAt(d.rng.Float64()))
		}
	}
}

// rhythm is the rate at a time of day, of that at the busiest time.
func rhythm(at time.Duration) float64 {
	phase := 2 * math.Pi * (at - busiest).Hours() / 24
	return quietest + (1-quietest)*(1+math.Cos(phase))/2
}

func (d *day) startBurst() {
	n := max(1, int(float64(d.cfg.Sandboxes)*burstShare))
	memory := flavorAt(d.rng.Float64())
	gap := burstWithin / time.Duration(n)
	for i := range n {
		d.queue = append(d.queue, d.arrival(d.burst+time.Duration(i)*gap, memory))
	}
	d.burst += burstWithin + d.exponential(burstEvery)
}

func (d *day) arrival(at time.Duration, memory cove.Bytes) arrival {
	length := float64(d.cfg.Median) * math.Exp(d.cfg.Sigma*d.rng.NormFloat64())
	return arrival{
		at: at, memory: memory, movable: d.rng.Float64() < d.cfg.Movable,
		length: time.Duration(min(max(length, float64(time.Second)), float64(longest))),
	}
}

// list is arrivals that are known already.
type list struct{ left []arrival }

func (l *list) next() (arrival, bool) {
	if len(l.left) == 0 {
		return arrival{}, false
	}
	a := l.left[0]
	l.left = l.left[1:]
	return a, true
}
