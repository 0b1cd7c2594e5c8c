package datarun

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb"
)

// sql answers a statement.
func (t *task) sql(ctx context.Context) error {
	list, err := t.find(ctx)
	if err != nil {
		return err
	}
	v, err := t.judgeSQL(ctx, list)
	if err != nil {
		return err
	}
	var used sources
	for _, u := range v.Tables {
		s := list.use(u)
		if s == nil || s.Problem != "" {
			return unusable(s, u.Table)
		}
		used = append(used, s)
	}
	if list, err = t.near(ctx, list, used); err != nil {
		return err
	}
	duck, err := t.cfg.DuckDB()
	if err != nil {
		return err
	}
	want := cove.RunPlace{Key: "sql " + list.stamps(), Volumes: list.volumes(), Tools: []cove.Tool{duck.Tool()}}
	return t.in(ctx, want, func(place cove.RunSandbox) error { return t.ask(ctx, duck, place, list, used) })
}

// unusable is the error for a table that cannot be asked.
func unusable(s *source, name string) error {
	if s == nil {
		return invalid("there is no table %.200s", name)
	}
	return invalid("%s cannot be asked: %s", s, s.Problem)
}

// near returns the sources that a place has for a statement: those of the datasets
// that it names, so that the next statement finds them there, and where they are on
// the host.
func (t *task) near(ctx context.Context, list, used sources) (sources, error) {
	if t.q.Request.Dataset != "" || t.ofSession() {
		return list.good(), nil
	}
	var out sources
	dirs := map[string]string{}
	for _, s := range list.good() {
		if !slices.ContainsFunc(used, func(u *source) bool { return u.set == s.set }) {
			continue
		}
		dir, ok := dirs[s.set]
		if !ok {
			var err error
			if _, dir, err = t.dataset(ctx, s.set, t.q.Grant); err != nil {
				return nil, err
			}
			dirs[s.set] = dir
		}
		s.dir = dir
		out = append(out, s)
	}
	return out, nil
}

// good are the sources that can be asked.
func (list sources) good() sources {
	var out sources
	for _, s := range list {
		if s.Problem == "" {
			out = append(out, s)
		}
	}
	return out
}

// in does something in a place, or in the session that the request names.
func (t *task) in(ctx context.Context, want cove.RunPlace, do func(cove.RunSandbox) error) error {
	r := t.q.Request
	want.Provider, want.Flavor, want.Session = r.Provider, r.Flavor, r.Session
	began := time.Now()
	place, done, err := t.host.Place(ctx, want)
	since(&t.q.Timings.Place, began)
	if err != nil {
		if r.Session != "" && cove.CodeOf(err) == cove.NotFound {
			return invalid("%s", cove.MessageOf(err))
		}
		return err
	}
	t.served(place)
	t.q.Timings.Queue = place.Waited
	t.q.Timings.Place -= min(t.q.Timings.Place, place.Waited)
	err = do(place)
	done(lost(ctx, err))
	return err
}

// ask loads what is not loaded yet, and asks the statement.
func (t *task) ask(ctx context.Context, duck *duckdb.Driver, place cove.RunSandbox, list, used sources) error {
	began := time.Now()
	h, err := duck.At(ctx, place)
	if err != nil {
		return err
	}
	since(&t.q.Timings.Place, began)
	began = time.Now()
	if err := t.bring(ctx, place, list); err != nil {
		return err
	}
	tables := list.tables(used, place.Memory)
	loaded, err := h.Load(ctx, tables)
	since(&t.q.Timings.Load, began)
	if err != nil {
		return err
	}
	if err := readable(loaded, used); err != nil {
		return err
	}
	r := t.q.Request
	q := duckdb.Question{SQL: r.SQL, Schema: schemaOf(loaded, r.Dataset), MaxRows: r.MaxRows, MaxBytes: int64(r.MaxOutput)}
	asking, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	began = time.Now()
	rows, err := h.Query(asking, q)
	since(&t.q.Timings.Query, began)
	if err != nil {
		if asking.Err() != nil && ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || duckdb.TypeOf(err) == cove.RunTimeout) {
			return overtime(t)
		}
		return err
	}
	t.tell(rows, len(tables) > 0)
	if r.SaveAs == "" {
		return nil
	}
	return t.save(ctx, place, h, q)
}

// tell puts a result into the answer.
func (t *task) tell(rows *duckdb.Rows, tables bool) {
	a := t.answer
	for _, c := range rows.Columns {
		a.Columns = append(a.Columns, c.Name)
		a.Types = append(a.Types, c.Type)
	}
	a.Rows = append(a.Rows, rows.Rows...)
	a.Truncated, a.Loaded = rows.Truncated, rows.Loaded && tables
	if rows.Truncated && rows.Count < t.q.Request.MaxRows {
		a.Stderr = "… (output truncated)\n"
	}
}

// smallPart is the part of the memory that the files may take of which all are
// loaded, used or not.
const smallPart = 8

// tables are what is loaded for a statement: all that there are, so that the next one
// finds its own, unless they are large.
func (list sources) tables(used sources, memory cove.Bytes) []duckdb.Table {
	var sum cove.Bytes
	for _, s := range list {
		sum += s.Size
	}
	if memory > 0 && sum > memory/smallPart {
		list = used
	}
	out := make([]duckdb.Table, 0, len(list))
	for _, s := range list {
		out = append(out, duckdb.Table{
			Schema: s.set, Name: s.Name, Path: s.inside, Format: duckdb.Format(s.Format), Columns: s.columns, Stamp: s.Stamp,
		})
	}
	return out
}

// readable refuses a statement about a file that could not be loaded.
func readable(loaded []duckdb.Loaded, used sources) error {
	for _, l := range loaded {
		if l.Problem == "" {
			continue
		}
		for _, s := range used {
			if s.set == l.Schema && s.Name == l.Name {
				if l.Memory {
					l.Problem += "; use a larger flavor"
				}
				return invalid("%s cannot be read from %s: %s", s, s.File, l.Problem)
			}
		}
	}
	return nil
}

// schemaOf is where a statement looks for tables, if anything is there.
func schemaOf(loaded []duckdb.Loaded, set string) string {
	if slices.ContainsFunc(loaded, func(l duckdb.Loaded) bool { return l.Schema == set && l.Problem == "" }) {
		return set
	}
	return ""
}
