package engine_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

func used(t *testing.T, p cove.Platform) cove.Consumption {
	t.Helper()
	r, err := p.Admin().Tenant(t.Context(), cove.DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	return r.Used
}

func wantHeld(t *testing.T, p cove.Platform, what string, held time.Duration, memory cove.Bytes) {
	t.Helper()
	if got := used(t, p); got.Held != held || got.MemoryTime != cove.MemoryTimeOf(memory, held) {
		t.Errorf("%s: %s and %g GB s, want %s of %s", what, got.Held, got.MemoryTime, held, memory)
	}
}

// TestHeldTime: a sandbox counts while it is held, by whatever server, and not a
// moment longer.
func TestHeldTime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world, e *engine.Engine, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{Idle: 100 * time.Hour, Lifetime: 200 * time.Hour, Flavor: "medium"})
		must := func(_ any, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		const size = 2 * cove.GiB
		after(time.Hour)
		wantHeld(t, p, "running", time.Hour, size)
		must(p.Sessions().Stop(t.Context(), s.ID))
		after(time.Hour)
		wantHeld(t, p, "stopped", time.Hour, size)
		must(p.Sessions().Start(t.Context(), s.ID))
		after(time.Hour)
		must(p.Snapshots().Pause(t.Context(), s.ID))
		after(time.Hour)
		wantHeld(t, p, "paused", 3*time.Hour, size)
		must(p.Snapshots().Resume(t.Context(), s.ID))

		w.shut(e, w.provider)
		after(time.Hour)
		if got, err := w.store.AddUsage(t.Context(), cove.DefaultTenant, cove.Consumption{}); err != nil || got.Held != 3*time.Hour {
			t.Errorf("a server that ended wrote %+v, %v", got, err)
		}
		e = w.open()
		p = e.As(boss)
		after(time.Hour)
		wantHeld(t, p, "taken up", 4*time.Hour, size)
		must(p.Sessions().Close(t.Context(), s.ID, false))
		after(time.Hour)
		wantHeld(t, p, "closed", 4*time.Hour, size)
		if got := used(t, p); got.Executions != 0 || got.CPU != 0 || got.Up != 0 || got.Down != 0 {
			t.Errorf("%+v was used without doing anything", got)
		}
	})
}

// TestUsageIsWrittenNowAndThen, so that a server that is killed loses no more than
// what came since.
func TestUsageIsWrittenNowAndThen(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world, _ *engine.Engine, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{})
		sh(t, p, s.ID, "true")
		after(10*time.Minute + time.Second)
		got, err := w.store.AddUsage(t.Context(), cove.DefaultTenant, cove.Consumption{})
		if err != nil || got.Held < 9*time.Minute || got.Held > 10*time.Minute+time.Second || got.Executions != 1 {
			t.Errorf("after ten minutes the store has %+v, %v", got, err)
		}
	})
}

// sulking is a store that takes down no usage for a while.
type sulking struct {
	cove.Store

	on *atomic.Bool
}

func (s sulking) AddUsage(ctx context.Context, tenant string, by cove.Consumption) (cove.Consumption, error) {
	if s.on.Load() && by != (cove.Consumption{}) {
		return cove.Consumption{}, errors.New("the disk is full")
	}
	return s.Store.AddUsage(ctx, tenant, by)
}

// TestUsageThatCannotBeWritten is written later, whole and once.
func TestUsageThatCannotBeWritten(t *testing.T) {
	var on atomic.Bool
	inBubble(t, func(t *testing.T, w *world, e *engine.Engine, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{Idle: 100 * time.Hour})
		on.Store(true)
		sh(t, p, s.ID, "true")
		after(time.Hour)
		sh(t, p, s.ID, "true")
		if got, err := w.store.AddUsage(t.Context(), cove.DefaultTenant, cove.Consumption{}); err != nil || got != (cove.Consumption{}) {
			t.Errorf("%+v, %v", got, err)
		}
		tasks, err := p.Admin().Tasks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		said := false
		for _, task := range tasks {
			said = said || task.Name == "records" && task.LastError != ""
		}
		if !said {
			t.Errorf("nobody is told: %+v", tasks)
		}
		on.Store(false)
		after(time.Hour)
		w.shut(e, w.provider)
		got, err := w.store.AddUsage(t.Context(), cove.DefaultTenant, cove.Consumption{})
		if err != nil || got.Held != 2*time.Hour || got.Executions != 2 {
			t.Errorf("%+v, %v", got, err)
		}
	}, func(c *engine.Config) { c.Store = sulking{c.Store, &on} })
}

// TestBytesAreCounted on every way into a sandbox and out of it.
func TestBytesAreCounted(t *testing.T) {
	w := newWorld(t)
	p := w.open().As(boss)
	s := mustOpen(t, p, cove.Spec{})
	last := used(t, p)
	step := func(what string, up, down bool) {
		t.Helper()
		now := used(t, p)
		if (now.Up > last.Up) != up || (now.Down > last.Down) != down {
			t.Errorf("%s moved %d bytes in and %d out", what, now.Up-last.Up, now.Down-last.Down)
		}
		last = now
	}
	if err := p.Files(s.ID).Write(t.Context(), "f", strings.NewReader("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	step("writing a file", true, false)
	archive, err := p.Files(s.ID).Archive(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(archive)
	if err := errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	step("fetching an archive", false, true)
	if err := p.Files(s.ID).Unpack(t.Context(), ".", bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	step("unpacking it", true, false)
	if _, err := p.Processes(s.ID).Start(t.Context(), cove.ExecRequest{Line: "serve 8080 hi"}); err != nil {
		t.Fatal(err)
	}
	conn, err := p.Ports(s.ID).Dial(t.Context(), 8080)
	for cove.CodeOf(err) == cove.Unavailable {
		conn, err = p.Ports(s.ID).Dial(t.Context(), 8080)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	step("a connection", true, true)
}

// worker makes sandboxes in which somebody works whom nobody waits for.
type worker struct {
	cove.Provider

	took time.Duration
}

func (p *worker) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	return p.with(p.Provider.Create(ctx, id, spec))
}

func (p *worker) Attach(ctx context.Context, id cove.ID) (cove.Sandbox, error) {
	return p.with(p.Provider.Attach(ctx, id))
}

func (p *worker) with(s cove.Sandbox, err error) (cove.Sandbox, error) {
	if err != nil {
		return nil, err
	}
	return workplace{s, p}, nil
}

type workplace struct {
	cove.Sandbox

	p *worker
}

func (w workplace) Usage(ctx context.Context) (cove.Usage, error) {
	u, err := w.Sandbox.Usage(ctx)
	u.CPU += w.p.took
	return u, err
}

// Unwrap lets [cove.As] find the powers below.
func (w workplace) Unwrap() cove.Sandbox { return w.Sandbox }

// TestTimeOfWhomNobodyWaitsFor: what programs leave behind counts with the end of
// their sandbox, and not again after a restart.
func TestTimeOfWhomNobodyWaitsFor(t *testing.T) {
	w := newWorld(t)
	var p *worker
	open := func() (*engine.Engine, cove.Platform) {
		e := w.open(func(c *engine.Config) {
			p = &worker{Provider: c.Providers[0]}
			c.Providers[0] = p
		})
		return e, e.As(boss)
	}
	e, pl := open()
	s := mustOpen(t, pl, cove.Spec{})
	sh(t, pl, s.ID, "true")
	booked := used(t, pl).CPU
	p.took = time.Hour
	if _, err := pl.Sessions().Stop(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if got := used(t, pl).CPU; booked <= 0 || got != booked+time.Hour {
		t.Errorf("after a stop %s, want %s and an hour", got, booked)
	}
	if _, err := pl.Sessions().Start(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	w.shut(e, w.provider)
	_, pl = open()
	p.took = 0
	if _, err := pl.Sessions().Close(t.Context(), s.ID, false); err != nil {
		t.Fatal(err)
	}
	if got := used(t, pl).CPU; got != booked+time.Hour {
		t.Errorf("after a restart %s", got)
	}
}
