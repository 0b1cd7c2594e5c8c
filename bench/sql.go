package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/inprocess"
	"github.com/cove-sandbox/cove/internal/dataset/sample"
	"github.com/cove-sandbox/cove/internal/measure"
)

// sqlOptions says how questions to data are measured.
type sqlOptions struct {
	duckdb string // the helper that the host runs directly; "" where there is none
	rows   int    // of the large table
	rounds int
	group  string // over the large table
	one    string // over the small one
	hungry string // needs more memory than there is
}

// What is asked. The small dataset is as large as a file that somebody sends.
const (
	largeData   = "large"
	smallData   = "small"
	ordersTable = "orders"
	smallRows   = 1000
	groupSQL    = "SELECT status, count(*) AS n, sum(total) AS total FROM orders GROUP BY status ORDER BY status"
	oneSQL      = "SELECT 1"
	// Nothing of it can be thrown away before it is all there.
	hungrySQL = "SELECT count(DISTINCT a.order_id * 1000003 + b.order_id) AS n FROM orders a, orders b"
)

func sqlPart(ctx context.Context, o options) (string, []row, error) {
	if o.sql.duckdb == "" {
		return absent(o, partSQL, "no executable of DuckDB was named; scripts/bench.sh builds one")
	}
	rows, err := sqlRows(ctx, o.sql, openData)
	return render("what questions to data cost", rows), rows, err
}

// openData is a whole platform in this process, with the datasets of a directory.
func openData(ctx context.Context, home, data string) (cove.Platform, func() error, error) {
	p, err := inprocess.Open(ctx, inprocess.Config{
		Home: home, Provider: partLocal, Settings: map[string]string{"COVE_DATASETS": data, "POOL_SIZE": "0"},
	})
	if err != nil {
		return nil, nil, err
	}
	return p, p.Close, nil
}

// sqlRows measures questions in a warm place beside the helper on the host.
func sqlRows(ctx context.Context, o sqlOptions, open func(ctx context.Context, home, data string) (cove.Platform, func() error, error)) (rows []row, err error) {
	dir, err := os.MkdirTemp("", "cove-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	data := filepath.Join(dir, "data")
	files := map[string]string{}
	for name, n := range map[string]int{largeData: o.rows, smallData: smallRows} {
		files[name] = filepath.Join(data, name, ordersTable+".csv")
		if err := errors.Join(os.MkdirAll(filepath.Dir(files[name]), 0o755), os.WriteFile(files[name], sample.Orders(n), 0o644)); err != nil { //nolint:gosec // sandboxes read it
			return nil, err
		}
	}
	p, closed, err := open(ctx, filepath.Join(dir, "home"), data)
	if err != nil {
		return nil, told(err)
	}
	defer func() { err = errors.Join(err, closed()) }()
	bench := sqlBench{o: o, p: p, files: files}
	for _, part := range []func(context.Context) (row, error){bench.groups, bench.ones, bench.hunger} {
		r, err := part(ctx)
		if err != nil {
			return nil, told(err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

type sqlBench struct {
	o     sqlOptions
	p     cove.Platform
	files map[string]string
}

// ask asks the platform, which must have an answer.
func (b sqlBench) ask(ctx context.Context, dataset, sql string) (*cove.RunAnswer, error) {
	run, err := b.p.Runs().Submit(ctx, cove.RunRequest{Type: cove.QuerySQL, Dataset: dataset, SQL: sql, Timeout: cove.MaxRunTimeout})
	if err != nil {
		return nil, err
	}
	if run, err = b.p.Runs().Wait(ctx, run.ID); err != nil {
		return nil, err
	}
	return run.Answer, nil
}

// warm is a question in a place where the tables are loaded.
func (b sqlBench) warm(dataset, sql string) measure.Contender {
	return measure.Contender{Name: sql, Run: func(ctx context.Context) error {
		a, err := b.ask(ctx, dataset, sql)
		if err == nil && a.Error != nil {
			err = fmt.Errorf("%s: %s", a.Error.Type, a.Error.Message)
		}
		return err
	}}
}

// groups compares a large question with the same one to a helper on the host that
// has the table loaded, too.
func (b sqlBench) groups(ctx context.Context) (_ row, err error) {
	h, err := startHelper(ctx, b.o.duckdb)
	if err != nil {
		return row{}, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	if err := h.load(b.files[largeData]); err != nil {
		return row{}, err
	}
	direct := measure.Contender{Name: "the helper on the host", Run: func(context.Context) error { return h.query(b.o.group) }}
	times, err := measure.Race(ctx, b.o.rounds, direct, b.warm(largeData, b.o.group))
	if err != nil {
		return row{}, err
	}
	name := fmt.Sprintf("`sql_group`: GROUP BY over %d rows in a warm place, in process ÷ the same in the helper on the host, warm as well", b.o.rows)
	return over(name, times[1], times[0], 1.15, 0), nil
}

// ones compares the smallest question with starting the helper for it.
func (b sqlBench) ones(ctx context.Context) (row, error) {
	direct := measure.Contender{Name: "starting the helper on the host", Run: func(ctx context.Context) error {
		h, err := startHelper(ctx, b.o.duckdb)
		if err != nil {
			return err
		}
		return errors.Join(h.load(b.files[smallData]), h.query(b.o.one), h.close())
	}}
	times, err := measure.Race(ctx, b.o.rounds, direct, b.warm(smallData, b.o.one))
	if err != nil {
		return row{}, err
	}
	name := fmt.Sprintf("`sql_one`: `SELECT 1` over a loaded dataset, in process ÷ starting the helper on the host, with %d rows to load", smallRows)
	return over(name, times[1], times[0], 0.2, 0), nil
}

// hunger wants a question that needs too much to be told so, and the next one to be
// answered.
func (b sqlBench) hunger(ctx context.Context) (row, error) {
	begun := time.Now()
	a, err := b.ask(ctx, largeData, b.o.hungry)
	if err != nil {
		return row{}, err
	}
	took := time.Since(begun)
	next, err := b.ask(ctx, largeData, b.o.one)
	if err != nil {
		return row{}, err
	}
	r := row{name: "`sql_memory`: a query over the memory of its flavor: what it is not told, and what does not live on", baseline: "the next query is answered"}
	switch {
	case a.Error == nil:
		r.measured, r.value = "it was answered", 1
	case a.Error.Type != cove.RunSQLFailed:
		r.measured, r.value = a.Error.Type+": "+strings.ReplaceAll(a.Error.Message, "|", " "), 1
	default:
		r.measured = fmt.Sprintf("%q after %.0f ms", a.Error.Message, micros(took)/1000)
	}
	if next.Error != nil {
		r.baseline, r.value = "the next query: "+next.Error.Type, r.value+1
	}
	return r, nil
}
