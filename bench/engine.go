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
	"github.com/cove-sandbox/cove/internal/measure"
	"github.com/cove-sandbox/cove/internal/policy"
	"github.com/cove-sandbox/cove/provider/fake"
	"github.com/cove-sandbox/cove/store/sqlite"
)

// rig is a whole engine on a provider, with the real store and journal in a
// folder of its own.
type rig struct {
	dir      string
	store    *sqlite.Store
	journal  *audit.Journal
	provider cove.Provider
	engine   *engine.Engine
	platform cove.Platform
	output   *os.Root
}

// newRig puts an engine on the provider that open opens in a directory of its own.
func newRig(ctx context.Context, open func(dir string) (cove.Provider, error), change ...func(*engine.Config)) (_ *rig, err error) {
	r := &rig{}
	if r.dir, err = os.MkdirTemp("", "cove-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close(ctx))
		}
	}()
	for _, name := range []string{"provider", "output"} {
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
	if r.provider, err = open(filepath.Join(r.dir, "provider")); err != nil {
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
	cfg := engine.Config{
		Providers: []cove.Provider{r.provider}, Provider: r.provider.Name(),
		Policy: rules, Store: r.store, Journal: r.journal, Archives: archives, Output: r.output, Node: "bench",
	}
	for _, c := range change {
		c(&cfg)
	}
	if r.engine, err = engine.Open(ctx, cfg); err != nil {
		return nil, err
	}
	r.platform = r.engine.As(cove.Principal{Name: "bench", Scopes: []cove.Scope{cove.ScopeAll}})
	return r, nil
}

func openFake(dir string) (cove.Provider, error) { return fake.New(fake.Config{Dir: dir}) }

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
	exec, bare         measure.Series // an exec through the engine, and of the sandbox alone
	open, make, insert measure.Series // opening a session, making its sandbox alone, and a bare insert into the session table
}

// few is the small size of the table.
const few = 10

// engineRows measures an engine with few sessions beside one with many.
func engineRows(ctx context.Context, scale, samples int) (_ []row, err error) {
	var rigs []*rig
	defer func() {
		for _, r := range rigs {
			err = errors.Join(err, r.close(ctx))
		}
	}()
	for _, n := range []int{few, scale} {
		r, err := newRig(ctx, openFake)
		if err != nil {
			return nil, err
		}
		rigs = append(rigs, r)
		if err := r.fill(ctx, n); err != nil {
			return nil, err
		}
	}
	small, large, err := compare(ctx, samples, rigs[0], rigs[1])
	if err != nil {
		return nil, err
	}
	return []row{
		small.execRow(few), large.execRow(scale),
		small.openRow(few), large.openRow(scale),
		flat("exec", scale, micros(minus(large.exec, large.bare)), micros(minus(small.exec, small.bare))),
		flat("open", scale, micros(large.open.Median()), micros(small.open.Median())),
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

// compare measures both sizes in the same rounds.
func compare(ctx context.Context, samples int, few, many *rig) (small, large costs, err error) {
	var execs, opens []measure.Contender
	for _, r := range []*rig{few, many} {
		s, err := r.open(ctx)
		if err != nil {
			return small, large, err
		}
		sandbox, err := r.provider.Attach(ctx, s.ID)
		if err != nil {
			return small, large, err
		}
		execs = append(execs, r.execs(s.ID, sandbox)...)
		opens = append(opens, r.opens(s)...)
	}
	e, err := measure.Race(ctx, samples*5, execs...)
	if err != nil {
		return small, large, err
	}
	o, err := measure.Race(ctx, samples, opens...)
	if err != nil {
		return small, large, err
	}
	return costs{e[0], e[1], o[0], o[1], o[2]}, costs{e[2], e[3], o[3], o[4], o[5]}, nil
}

// execs run a program through the engine, and in the sandbox alone.
func (r *rig) execs(id cove.ID, sandbox cove.Sandbox) []measure.Contender {
	argv := []string{"true"}
	return []measure.Contender{
		{Name: "exec", Run: func(ctx context.Context) error {
			_, err := r.platform.Processes(id).Exec(ctx, cove.ExecRequest{Argv: argv})
			return err
		}},
		{Name: "exec in the sandbox alone", Run: func(ctx context.Context) error {
			p, err := sandbox.Start(ctx, cove.Command{Argv: argv})
			if err != nil {
				return err
			}
			_, err = p.Wait(ctx)
			return err
		}},
	}
}

// opens open a session, make a bare sandbox, and insert a record like another.
// Sessions and sandboxes are taken away again, so that the table keeps its size.
func (r *rig) opens(like *cove.Session) []measure.Contender {
	var made *cove.Session
	var bare cove.Sandbox
	return []measure.Contender{
		{Name: "open", Run: func(ctx context.Context) (err error) {
			made, err = r.open(ctx)
			return err
		}, After: func(ctx context.Context) error {
			if made == nil {
				return nil
			}
			_, err := r.platform.Sessions().Close(ctx, made.ID, false)
			return err
		}},
		{Name: "create", Run: func(ctx context.Context) (err error) {
			bare, err = r.provider.Create(ctx, cove.NewID(), like.Spec)
			return err
		}, After: func(ctx context.Context) error {
			if bare == nil {
				return nil
			}
			return bare.Destroy(ctx)
		}},
		{Name: "insert", Run: func(ctx context.Context) error {
			rec := *like
			rec.ID, rec.Version = cove.NewID(), 0
			return r.store.PutSession(ctx, &rec)
		}},
	}
}

// minus returns the median of the differences in each round.
func minus(a, b measure.Series) time.Duration {
	d := make(measure.Series, min(len(a), len(b)))
	for i := range d {
		d[i] = a[i] - b[i]
	}
	return d.Median()
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

func (c costs) execRow(n int) row {
	return row{
		name:     fmt.Sprintf("the engine's own cost of an exec, journal included, %d sessions", n),
		measured: fmt.Sprintf("%.1f µs", micros(c.exec.Median())), baseline: fmt.Sprintf("%.1f µs for the sandbox alone", micros(c.bare.Median())),
		value: micros(minus(c.exec, c.bare)), unit: " µs", must: 50,
	}
}

func (c costs) openRow(n int) row {
	return row{
		name:     fmt.Sprintf("the engine's own cost of opening a session, two records and a synced journal line included, %d sessions", n),
		measured: fmt.Sprintf("%.0f µs", micros(c.open.Median())),
		baseline: fmt.Sprintf("%.0f µs for the sandbox alone; a bare insert into the session table takes %.0f µs", micros(c.make.Median()), micros(c.insert.Median())),
		value:    micros(minus(c.open, c.make)) / 1000, unit: " ms", must: 1,
	}
}

func flat(what string, n int, large, small float64) row {
	return row{
		name:     fmt.Sprintf("%s with %d sessions ÷ with %d", what, n, few),
		measured: fmt.Sprintf("%.1f µs", large), baseline: fmt.Sprintf("%.1f µs", small),
		value: large / small, must: 1.5,
	}
}
