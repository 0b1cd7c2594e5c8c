package datarun

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb"
)

// Bounds of a description.
const (
	sampleRows   = 5
	describeTime = 30 * time.Second
	maxDescribed = 64
)

// described remembers what was in files, as long as they stay as they are.
type described struct {
	mu    sync.Mutex
	known map[string][]duckdb.Loaded // guarded by mu; by the stamps of the files
	order []string                   // guarded by mu; oldest first
}

func newDescribed() *described { return &described{known: map[string][]duckdb.Loaded{}} }

func (d *described) get(key string) []duckdb.Loaded {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known[key]
}

func (d *described) put(key string, what []duckdb.Loaded) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.known[key]; !ok {
		d.order = append(d.order, key)
	}
	d.known[key] = what
	for len(d.order) > maxDescribed {
		delete(d.known, d.order[0])
		d.order = d.order[1:]
	}
}

// Describe implements [cove.Runner].
func (r *Runner) Describe(ctx context.Context, host cove.RunHost, id string, g cove.DataGrant) (*cove.Dataset, error) {
	d, dir, err := r.dataset(ctx, id, g)
	if p, ok := errors.AsType[*problem](err); ok {
		return nil, cove.Errorf(cove.NotFound, "%s", p.Message)
	}
	if err != nil {
		return nil, err
	}
	duck, err := r.cfg.DuckDB()
	if err != nil {
		return nil, err
	}
	out := *d
	out.Tables = append([]cove.Table{}, d.Tables...)
	list := sourcesOf(d, dir, g).good()
	key := list.stamps()
	seen := r.seen.get(key)
	if seen == nil && len(list) > 0 {
		t := &task{Runner: r, host: host, q: cove.RunQuestion{Grant: g, Timings: &cove.RunTimings{}}}
		if seen, err = t.look(ctx, duck, list); err != nil {
			return nil, err
		}
		r.seen.put(key, seen)
	}
	for _, l := range seen {
		for i := range out.Tables {
			if table := &out.Tables[i]; table.Name == l.Name && table.Problem == "" {
				fill(table, l)
				if most := g.MaxRows; most > 0 {
					table.Sample = table.Sample[:min(most, len(table.Sample))]
				}
			}
		}
	}
	return &out, nil
}

// fill adds to a table what was seen in its file.
func fill(t *cove.Table, l duckdb.Loaded) {
	t.Rows, t.Sample, t.Problem = l.Rows, l.Samples, l.Problem
	t.Columns = nil
	for _, c := range l.Columns {
		t.Columns = append(t.Columns, cove.Column{Name: c.Name, Type: c.Type})
	}
}

// look describes files in a place of its own: where nothing is loaded yet.
func (t *task) look(ctx context.Context, duck *duckdb.Driver, list sources) (seen []duckdb.Loaded, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, describeTime,
		cove.Errorf(cove.Timeout, "looking into the files took longer than %s", describeTime).Remedy("try again, or ask them in SQL"))
	defer cancel()
	want := cove.RunPlace{Volumes: list.volumes(), Tools: []cove.Tool{duck.Tool()}}
	err = t.in(ctx, want, func(place cove.RunSandbox) error {
		if err := t.bring(ctx, place, list); err != nil {
			return err
		}
		h, err := duck.At(ctx, place)
		if err != nil {
			return err
		}
		seen, err = h.Describe(ctx, list.tables(list, 0), sampleRows)
		return err
	})
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return seen, err
}
