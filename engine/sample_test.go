package engine_test

import (
	"context"
	"math"
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

// TestEachSandboxHasItsTurn: who is asked late in a round has as long to answer as the
// first, those who wait long for their turn count with what they used meanwhile, and
// an answer that was cut short does not count.
func TestEachSandboxHasItsTurn(t *testing.T) {
	for _, many := range []int{8, 80} {
		began := time.Now()
		slow := &scales{name: "fake", usage: func(ctx context.Context, _ cove.ID) (cove.Usage, error) {
			select {
			case <-ctx.Done():
				return cove.Usage{}, ctx.Err()
			case <-time.After(300 * time.Millisecond):
				return cove.Usage{CPU: time.Since(began) / 2, Memory: cove.MiB}, nil
			}
		}}
		half := &scales{name: "half", usage: func(ctx context.Context, _ cove.ID) (cove.Usage, error) {
			<-ctx.Done()
			return cove.Usage{CPU: time.Since(began)}, nil
		}}
		inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
			began = time.Now()
			for range many {
				mustOpen(t, p, cove.Spec{})
			}
			mustOpen(t, p, cove.Spec{Provider: "half"})
			for range 300 { // ten minutes
				shares(t, p)
				after(2 * time.Second)
			}
			got := shares(t, p)
			if f := got["fake"]; f.Measured < min(many, 60) || f.UsedMemory != cove.Bytes(f.Measured)*cove.MiB || math.Abs(f.UsedCPUs-float64(f.Measured)/2) > 0.01 {
				t.Errorf("%d slow ones use %+v", many, f)
			}
			if h := got["half"]; h.Measured != 0 {
				t.Errorf("one that was cut short uses %+v", h)
			}
		}, with(slow, half))
	}
}

// TestUseOfOthers is not told.
func TestUseOfOthers(t *testing.T) {
	big := &scales{name: "fake", usage: func(context.Context, cove.ID) (cove.Usage, error) {
		return cove.Usage{CPU: time.Second, Memory: cove.MiB}, nil
	}}
	other := &scales{name: "other", usage: big.usage}
	inBubble(t, func(t *testing.T, _ *world, e *engine.Engine, p cove.Platform) {
		mustOpen(t, p, cove.Spec{})
		mustOpen(t, p, cove.Spec{Provider: "other"})
		guest := e.As(cove.Principal{Name: "guest", Tenant: "guests", Scopes: []cove.Scope{cove.ScopeRead, cove.ScopeWrite}})
		mustOpen(t, guest, cove.Spec{})
		shares(t, p)
		after(time.Second)
		got := shares(t, guest)
		if f := got["fake"]; len(got) != 1 || f.Active != 1 || f.Measured != 1 || f.UsedMemory != cove.MiB {
			t.Errorf("a guest sees %+v", got)
		}
	}, with(big, other))
}
