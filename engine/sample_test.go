package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

// scales is a provider whose sandboxes use what a test says.
type scales struct {
	cove.Provider

	name  string
	usage func(ctx context.Context, id cove.ID) (cove.Usage, error)
	asked atomic.Int64
}

func (s *scales) Name() string { return s.name }

func (s *scales) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	sandbox, err := s.Provider.Create(ctx, id, spec)
	return weighed{sandbox, s}, err
}

type weighed struct {
	cove.Sandbox

	on *scales
}

func (w weighed) Unwrap() cove.Sandbox { return w.Sandbox }

func (w weighed) Usage(ctx context.Context) (cove.Usage, error) {
	w.on.asked.Add(1)
	return w.on.usage(ctx, w.ID())
}

func shares(t *testing.T, p cove.Platform) map[string]*cove.ProviderShare {
	t.Helper()
	stats, err := p.Admin().Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stats.ByProvider
}

// TestUseByProvider is measured only while somebody looks, and is of one provider each.
func TestUseByProvider(t *testing.T) {
	began := time.Now()
	busy := &scales{name: "fake", usage: func(context.Context, cove.ID) (cove.Usage, error) {
		return cove.Usage{CPU: time.Since(began) / 2, Memory: 3 * cove.MiB}, nil
	}}
	quiet := &scales{name: "quiet", usage: func(context.Context, cove.ID) (cove.Usage, error) {
		return cove.Usage{CPU: time.Second, Memory: cove.MiB}, nil
	}}
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		began = time.Now()
		mustOpen(t, p, cove.Spec{Flavor: "medium"})
		mustOpen(t, p, cove.Spec{})
		other := mustOpen(t, p, cove.Spec{Provider: "quiet"})
		after(time.Hour / 4)
		if n := busy.asked.Load() + quiet.asked.Load(); n != 0 {
			t.Errorf("%d sandboxes were asked for nobody", n)
		}
		for name, got := range shares(t, p) {
			if got.Measured != 0 || !got.MeasuredAt.IsZero() || got.UsedMemory != 0 {
				t.Errorf("before anybody measured, %s uses %+v", name, got)
			}
		}
		after(2 * time.Second)
		shares(t, p)
		after(2 * time.Second)
		want := map[string]*cove.ProviderShare{
			"fake":  {Active: 2, ByState: map[cove.State]int{cove.Running: 2}, Memory: 3 * cove.GiB, CPUs: 3, UsedMemory: 6 * cove.MiB, UsedCPUs: 1, Measured: 2, MeasuredAt: time.Now().Add(-2 * time.Second)},
			"quiet": {Active: 1, ByState: map[cove.State]int{cove.Running: 1}, Memory: cove.GiB, CPUs: 1, UsedMemory: cove.MiB, Measured: 1, MeasuredAt: time.Now().Add(-2 * time.Second)},
		}
		for name, got := range shares(t, p) {
			if diff := cmp.Diff(want[name], got); diff != "" {
				t.Errorf("%s has (-want +got):\n%s", name, diff)
			}
		}
		if _, err := p.Sessions().Stop(t.Context(), other.ID); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&cove.ProviderShare{ByState: map[cove.State]int{cove.Stopped: 1}}, shares(t, p)["quiet"]); diff != "" {
			t.Errorf("without a sandbox (-want +got):\n%s", diff)
		}
		asked := busy.asked.Load()
		after(10 * time.Minute)
		if n := busy.asked.Load() - asked; n > 2 {
			t.Errorf("%d were asked after somebody looked for the last time", n)
		}
		if got := shares(t, p)["fake"]; got.Measured != 0 || got.Active != 2 {
			t.Errorf("what was measured ten minutes ago counts: %+v", got)
		}
	}, with(busy, quiet))
}

// with has the engine use these in the place of its provider, which stands behind them.
func with(all ...*scales) func(*engine.Config) {
	return func(c *engine.Config) {
		behind := c.Providers[0]
		c.Providers = nil
		for _, s := range all {
			s.Provider = behind
			c.Providers = append(c.Providers, s)
		}
	}
}

// TestAskingForUseIsBounded: neither many sandboxes nor silent ones, nor lies, nor
// somebody who asks all the time make it more than a small part of the time.
func TestAskingForUseIsBounded(t *testing.T) {
	const many = 40
	slow := &scales{name: "fake", usage: func(ctx context.Context, _ cove.ID) (cove.Usage, error) {
		select {
		case <-ctx.Done():
			return cove.Usage{}, ctx.Err()
		case <-time.After(50 * time.Millisecond):
			return cove.Usage{CPU: time.Duration(time.Now().UnixNano()) * 1000, Memory: -1}, nil
		}
	}}
	stuck := &scales{name: "stuck", usage: func(ctx context.Context, _ cove.ID) (cove.Usage, error) {
		<-ctx.Done()
		return cove.Usage{}, ctx.Err()
	}}
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		for range many {
			mustOpen(t, p, cove.Spec{})
		}
		mustOpen(t, p, cove.Spec{Provider: "stuck"})
		for range 600 { // a minute
			shares(t, p)
			after(100 * time.Millisecond)
		}
		// A round is half a second, in which four at once are asked ten times, and then ten pass.
		if n := slow.asked.Load(); n < many || n > 6*(many+4) {
			t.Errorf("%d of %d sandboxes were asked in a minute", n, many)
		}
		got := shares(t, p)
		if f := got["fake"]; f.Measured != many || f.UsedMemory != 0 || f.UsedCPUs > many*1.1 {
			t.Errorf("slow ones use %+v", f)
		}
		if s := got["stuck"]; s.Active != 1 || s.Measured != 0 {
			t.Errorf("one that says nothing uses %+v", s)
		}
	}, with(slow, stuck))
}
