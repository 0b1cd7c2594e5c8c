package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/archive"
	"github.com/cove-sandbox/cove/internal/audit"
	"github.com/cove-sandbox/cove/internal/policy"
	"github.com/cove-sandbox/cove/provider/fake"
	"github.com/cove-sandbox/cove/store/sqlite"
)

// rig is a whole engine on the fake provider, with the real store and journal
// in a folder of its own.
type rig struct {
	dir      string
	store    *sqlite.Store
	journal  *audit.Journal
	provider *fake.Provider
	engine   *engine.Engine
	platform cove.Platform
	output   *os.Root
}

func newRig(ctx context.Context) (_ *rig, err error) {
	r := &rig{}
	if r.dir, err = os.MkdirTemp("", "cove-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close(ctx))
		}
	}()
	for _, name := range []string{"fake", "output"} {
		if err := os.Mkdir(filepath.Join(r.dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	if r.store, err = sqlite.Open(ctx, filepath.Join(r.dir, "cove.db")); err != nil {
		return nil, err
	}
	if r.journal, err = audit.Open(audit.Config{Dir: filepath.Join(r.dir, "journal"), Node: "bench"}); err != nil {
		return nil, err
	}
	if r.provider, err = fake.New(fake.Config{Dir: filepath.Join(r.dir, "fake")}); err != nil {
		return nil, err
	}
	if r.output, err = os.OpenRoot(filepath.Join(r.dir, "output")); err != nil {
		return nil, err
	}
	archives, err := archive.Open(filepath.Join(r.dir, "archives"))
	if err != nil {
		return nil, err
	}
	rules, err := policy.New(policy.Config{})
	if err != nil {
		return nil, err
	}
	r.engine, err = engine.Open(ctx, engine.Config{
		Providers: []cove.Provider{r.provider}, Provider: r.provider.Name(),
		Policy: rules, Store: r.store, Journal: r.journal, Archives: archives, Output: r.output, Node: "bench",
	})
	if err != nil {
		return nil, err
	}
	r.platform = r.engine.As(cove.Principal{Name: "bench", Scopes: []cove.Scope{cove.ScopeAll}})
	return r, nil
}

func (r *rig) close(ctx context.Context) error {
	var err error
	if r.engine != nil {
		err = errors.Join(err, r.engine.Close(ctx))
	}
	if r.provider != nil {
		err = errors.Join(err, r.provider.Close())
	}
	if r.journal != nil {
		err = errors.Join(err, r.journal.Close())
	}
	if r.store != nil {
		err = errors.Join(err, r.store.Close())
	}
	if r.output != nil {
		err = errors.Join(err, r.output.Close())
	}
	return errors.Join(err, os.RemoveAll(r.dir))
}

func (r *rig) open(ctx context.Context) (*cove.Session, error) {
	return r.platform.Sessions().Open(ctx, cove.OpenRequest{})
}

// costs is what one size of the table costs.
type costs struct {
	exec, bare time.Duration // an exec through the engine, and of the sandbox alone
	open, make time.Duration // opening a session, and making its sandbox alone
	insert     time.Duration // a bare insert into the session table
}

// engineRows measures the engine with few sessions and with many.
func engineRows(ctx context.Context, scale, samples int) (_ []row, err error) {
	r, err := newRig(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close(ctx)) }()
	const few = 10
	if err := r.fill(ctx, few); err != nil {
		return nil, err
	}
	small, err := r.measure(ctx, samples)
	if err != nil {
		return nil, err
	}
	if err := r.fill(ctx, scale); err != nil {
		return nil, err
	}
	large, err := r.measure(ctx, samples)
	if err != nil {
		return nil, err
	}
	return []row{
		small.execRow(few), large.execRow(scale),
		small.openRow(few), large.openRow(scale),
		flat("exec", scale, micros(large.exec-large.bare), micros(small.exec-small.bare)),
		flat("open", scale, micros(large.open), micros(small.open)),
	}, nil
}

// fill opens sessions until there are n.
func (r *rig) fill(ctx context.Context, n int) error {
	stats, err := r.platform.Admin().Stats(ctx)
	if err != nil {
		return err
	}
	for range n - stats.ActiveSessions {
		if _, err := r.open(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *rig) measure(ctx context.Context, samples int) (costs, error) {
	s, err := r.open(ctx)
	if err != nil {
		return costs{}, err
	}
	sandbox, err := r.provider.Attach(ctx, s.ID)
	if err != nil {
		return costs{}, err
	}
	argv := []string{"true"}
	times, err := interleave(samples*5, func() error {
		_, err := r.platform.Processes(s.ID).Exec(ctx, cove.ExecRequest{Argv: argv})
		return err
	}, func() error {
		p, err := sandbox.Start(ctx, cove.Command{Argv: argv})
		if err != nil {
			return err
		}
		_, err = p.Wait(ctx)
		return err
	})
	if err != nil {
		return costs{}, err
	}
	opens, err := r.measureOpen(ctx, samples, s)
	if err != nil {
		return costs{}, err
	}
	return costs{exec: times[0], bare: times[1], open: opens[0], make: opens[1], insert: opens[2]}, nil
}

// measureOpen opens sessions beside making bare sandboxes and bare inserts of
// the same record. Sessions and sandboxes are taken away again, so that the
// table keeps its size.
func (r *rig) measureOpen(ctx context.Context, samples int, like *cove.Session) ([]time.Duration, error) {
	var made []cove.ID
	var bare []cove.Sandbox
	times, err := interleave(samples, func() error {
		s, err := r.open(ctx)
		if err == nil {
			made = append(made, s.ID)
		}
		return err
	}, func() error {
		sandbox, err := r.provider.Create(ctx, cove.NewID(), like.Spec)
		bare = append(bare, sandbox)
		return err
	}, func() error {
		rec := *like
		rec.ID, rec.Version = cove.NewID(), 0
		return r.store.PutSession(ctx, &rec)
	})
	if err != nil {
		return nil, err
	}
	for _, id := range made {
		if _, err := r.platform.Sessions().Close(ctx, id, false); err != nil {
			return nil, err
		}
	}
	for _, sandbox := range bare {
		if err := sandbox.Destroy(ctx); err != nil {
			return nil, err
		}
	}
	return times, nil
}

func (c costs) execRow(n int) row {
	return row{
		name:     fmt.Sprintf("the engine's own cost of an exec, journal included, %d sessions", n),
		measured: fmt.Sprintf("%.1f µs", micros(c.exec)), baseline: fmt.Sprintf("%.1f µs for the sandbox alone", micros(c.bare)),
		value: micros(c.exec - c.bare), unit: " µs", must: 50,
	}
}

func (c costs) openRow(n int) row {
	return row{
		name:     fmt.Sprintf("the engine's own cost of opening a session, two records and a synced journal line included, %d sessions", n),
		measured: fmt.Sprintf("%.0f µs", micros(c.open)),
		baseline: fmt.Sprintf("%.0f µs for the sandbox alone; a bare insert into the session table takes %.0f µs", micros(c.make), micros(c.insert)),
		value:    micros(c.open-c.make) / 1000, unit: " ms", must: 1,
	}
}

func flat(what string, n int, large, small float64) row {
	return row{
		name:     fmt.Sprintf("%s with %d sessions ÷ with 10", what, n),
		measured: fmt.Sprintf("%.1f µs", large), baseline: fmt.Sprintf("%.1f µs", small),
		value: large / small, must: 1.5,
	}
}
