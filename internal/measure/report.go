package measure

import (
	"context"
	"errors"
	"time"

	"github.com/cove-sandbox/cove"
)

// Config says what to measure. The zero value of a field takes its default.
type Config struct {
	Rounds   int // of each contender; 200 if 0
	Sessions int // that are idle at once when their memory is read; 16 if 0
	Workers  int // programs at once; 32 if 0
	// Others run in the same rounds, after the provider's own contenders, the
	// host and bubblewrap, which is there where it works.
	Others []Contender
}

// The keys of timings, which programs that read a report may rely on.
const (
	KeyHost   = "host"   // Host
	KeyLive   = "live"   // Stage.Live
	KeyPooled = "pooled" // Stage.Pooled, where the provider can
	KeyCold   = "cold"   // Stage.Cold
	KeySolo   = "solo"   // Stage.Solo, where the provider can
	KeyBwrap  = "bwrap"  // Bwrap, where it works
)

// Timing is what one contender took. Others of Config have their name as key.
type Timing struct {
	Key       string  `json:"key"`
	Name      string  `json:"name"`
	Median    float64 `json:"median_ms"`
	P95       float64 `json:"p95_ms"`
	OverHost  float64 `json:"over_host"`            // times as long as on the host
	OverBwrap float64 `json:"over_bwrap,omitempty"` // times as long as bubblewrap
}

// Throughput is how many programs finish in a second where many run at once.
type Throughput struct {
	Workers  int     `json:"workers"`
	Sessions int     `json:"sessions"`   // that they share
	Inside   float64 `json:"per_second"` // in sandboxes
	Host     float64 `json:"host_per_second"`
	OverHost float64 `json:"over_host"`
}

// Report is all that was measured.
type Report struct {
	Provider string       `json:"provider"`
	Machine  Machine      `json:"machine"`
	Rounds   int          `json:"rounds"`
	Timings  []Timing     `json:"timings"`
	Crowds   []Throughput `json:"concurrent"`
	Memory   *Memory      `json:"memory,omitempty"` // nil where it cannot be read
}

// Of returns the timing with a key; ok is false where there is none.
func (r Report) Of(key string) (t Timing, ok bool) {
	for _, t := range r.Timings {
		if t.Key == key {
			return t, true
		}
	}
	return t, false
}

// Run measures the provider of a stage. It leaves nothing behind.
func (s *Stage) Run(ctx context.Context, cfg Config) (Report, error) {
	cfg = cfg.withDefaults()
	r := Report{Provider: s.provider.Name(), Machine: ThisMachine(), Rounds: cfg.Rounds}
	var err error
	if r.Timings, err = s.timings(ctx, cfg); err != nil {
		return r, err
	}
	if r.Crowds, err = s.crowds(ctx, cfg); err != nil {
		return r, err
	}
	m, err := s.Idle(ctx, cfg.Sessions)
	if errors.Is(err, cove.Unavailable) {
		return r, nil
	}
	r.Memory = &m
	return r, err
}

func (c Config) withDefaults() Config {
	for _, f := range []struct {
		field *int
		value int
	}{{&c.Rounds, 200}, {&c.Sessions, 16}, {&c.Workers, 32}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	return c
}

func (s *Stage) timings(ctx context.Context, cfg Config) ([]Timing, error) {
	keys, all := []string{KeyHost, KeyLive}, []Contender{Host(), s.Live()}
	add := func(key string, c Contender) { keys, all = append(keys, key), append(all, c) }
	if c, ok := s.Pooled(); ok {
		add(KeyPooled, c)
	}
	add(KeyCold, s.Cold())
	if c, ok := s.Solo(); ok {
		add(KeySolo, c)
	}
	if c, err := Bwrap(ctx); err == nil {
		add(KeyBwrap, c)
	}
	for _, c := range cfg.Others {
		add(c.Name, c)
	}
	times, err := Race(ctx, cfg.Rounds, all...)
	if err != nil {
		return nil, err
	}
	var base Series // of bubblewrap
	timings := make([]Timing, len(all))
	for i, c := range all {
		if keys[i] == KeyBwrap {
			base = times[i]
		}
		timings[i] = TimingOf(keys[i], c, times[i], times[0])
	}
	for i := range timings {
		timings[i].OverBwrap = times[i].Over(base)
	}
	return timings, nil
}

// TimingOf sums a contender up, beside the host in the same race.
func TimingOf(key string, c Contender, took, host Series) Timing {
	return Timing{Key: key, Name: c.Name, Median: millis(took.Median()), P95: millis(took.P95()), OverHost: took.Over(host)}
}

// crowds lets many programs run at once: all in one sandbox, and each in one of
// its own.
func (s *Stage) crowds(ctx context.Context, cfg Config) (_ []Throughput, err error) {
	crowd := Crowd{Workers: cfg.Workers, Each: 4}
	boxes := make([]cove.Sandbox, 0, crowd.Workers)
	defer func() {
		for _, b := range boxes {
			err = errors.Join(err, b.Destroy(context.WithoutCancel(ctx)))
		}
	}()
	for range crowd.Workers {
		b, err := s.create(ctx)
		if err != nil {
			return nil, err
		}
		boxes = append(boxes, b)
	}
	free := make(chan cove.Sandbox, len(boxes))
	for _, b := range boxes {
		free <- b
	}
	apart := Contender{Name: "sessions", Run: func(ctx context.Context) error {
		b := <-free
		defer func() { free <- b }()
		return runTrue(ctx, b)
	}}
	times, err := Race(ctx, max(3, cfg.Rounds/10), crowd.Of(Host()), crowd.Of(s.Live()), crowd.Of(apart))
	if err != nil {
		return nil, err
	}
	var all []Throughput
	for i, sessions := range []int{1, crowd.Workers} {
		all = append(all, Throughput{
			Workers: crowd.Workers, Sessions: sessions, Inside: crowd.PerSecond(times[i+1]), Host: crowd.PerSecond(times[0]),
			OverHost: times[0].Over(times[i+1]),
		})
	}
	return all, nil
}

func millis(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
