package duckdb_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

func TestAnswers(t *testing.T) {
	in := &puppet{play: honest("", nil)}
	h := loaded(t, in)
	rows, err := h.Query(t.Context(), question)
	if err != nil {
		t.Fatal(err)
	}
	if !rows.Loaded || rows.Load <= 0 || rows.Query != 7 || rows.Count != 2 || rows.Truncated || string(rows.Rows[1]) != `[2,null]` {
		t.Errorf("the first question: %+v", rows)
	}
	if diff := cmp.Diff([]duckdb.Column{{Name: "a", Type: "BIGINT"}, {Name: "b", Type: "VARCHAR"}}, rows.Columns); diff != "" {
		t.Error(diff)
	}
	if rows, err = h.Query(t.Context(), question); err != nil || rows.Loaded || rows.Load != 0 {
		t.Errorf("the second question: %+v, %v", rows, err)
	}
	if f, err := h.Frame(t.Context(), question, "/tmp/f"); err != nil || f.Count != 2 || len(f.Columns) != 1 {
		t.Errorf("a frame: %+v, %v", f, err)
	}
	if tree, err := h.Parse(t.Context(), "SELECT 1"); err != nil || len(tree.Statements) != 1 {
		t.Errorf("a tree: %+v, %v", tree, err)
	}
	if _, err := h.Describe(t.Context(), orders, 1); cove.CodeOf(err) != cove.Conflict {
		t.Errorf("files, after loading: %v", err)
	}
	if in.started() != 1 || !h.Alive() || in.parts[0].env["HOME"] != "/nonexistent" || in.parts[0].env["TZ"] != "UTC" {
		t.Errorf("%d processes, alive: %v", in.started(), h.Alive())
	}
}

func TestDescribe(t *testing.T) {
	h, err := duckdb.New(cove.Tool{}, duckdb.Limits{}).Open(t.Context(), &puppet{play: honest("", nil)}, options)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(t.Context())
	got, err := h.Describe(t.Context(), orders, 5)
	if want := []duckdb.Loaded{{Schema: "shop", Name: "orders", Rows: 2, Columns: []duckdb.Column{{Name: "a", Type: "BIGINT"}}}}; err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := h.Query(t.Context(), question); cove.CodeOf(err) != cove.Conflict {
		t.Errorf("a question before loading: %v", err)
	}
}

// TestTablesStay: what is loaded stays, what has changed is loaded again, by a
// process that has loaded nothing yet.
func TestTablesStay(t *testing.T) {
	in := &puppet{play: honest("", nil)}
	h := loaded(t, in)
	changed := []duckdb.Table{orders[0]}
	for i, c := range []struct {
		name   string
		change func(*duckdb.Table)
	}{
		{"nothing", func(*duckdb.Table) {}},
		{"the file", func(x *duckdb.Table) { x.Stamp = "2" }},
		{"the columns", func(x *duckdb.Table) { x.Columns = []string{"a"} }},
		{"the path", func(x *duckdb.Table) { x.Path = "/data/x.csv" }},
	} {
		c.change(&changed[0])
		for range 2 {
			if got, err := h.Load(t.Context(), changed); err != nil || len(got) != 1 {
				t.Fatalf("%s: %v, %v", c.name, got, err)
			}
		}
		if in.started() != i+1 {
			t.Errorf("%s: %d processes, want %d", c.name, in.started(), i+1)
		}
	}
	if got, err := h.Load(t.Context(), nil); err != nil || len(got) != 0 || in.started() != 5 {
		t.Errorf("no table: %v, %v", got, err)
	}
	if _, err := h.Query(t.Context(), question); err != nil {
		t.Errorf("a question without tables: %v", err)
	}
}

// TestBroughtBack: a helper that ended is started again by the next question, with
// its tables, and the answer says so.
func TestBroughtBack(t *testing.T) {
	in := &puppet{play: honest("", nil)}
	h := loaded(t, in)
	if _, err := h.Query(t.Context(), question); err != nil {
		t.Fatal(err)
	}
	in.end()
	rows, err := h.Query(t.Context(), question)
	if duckdb.TypeOf(err) == cove.RunInternalError { // its end was not known yet
		rows, err = h.Query(t.Context(), question)
	}
	if err != nil || !rows.Loaded || in.started() != 2 {
		t.Errorf("got %+v, %v, %d processes", rows, err, in.started())
	}
}

// TestFaults: what the engine says is an error of the right type, fit to be shown.
func TestFaults(t *testing.T) {
	long := strings.Repeat("é\x1b", 20_000)
	for _, c := range []struct {
		fault ask.Fault
		code  cove.Code
		kind  string
		says  string
	}{
		{ask.Fault{Kind: ask.Syntax, Message: "bad word", Line: 2, Column: 3}, cove.Invalid, "SQL_EXECUTION_ERROR", "bad word"},
		{ask.Fault{Kind: ask.NotSelect, Message: "it is no SELECT"}, cove.Invalid, "SQL_EXECUTION_ERROR", "no SELECT"},
		{ask.Fault{Kind: ask.NotOne, Message: "two"}, cove.Invalid, "SQL_EXECUTION_ERROR", "two"},
		{ask.Fault{Kind: ask.Failed, Message: long, Line: -1, Column: -5}, cove.Invalid, "SQL_EXECUTION_ERROR", "éé"},
		{ask.Fault{Kind: ask.Failed}, cove.Invalid, "SQL_EXECUTION_ERROR", "no reason"},
		{ask.Fault{Kind: ask.Large, Message: "too long"}, cove.Invalid, "SQL_EXECUTION_ERROR", "too long"},
		{ask.Fault{Kind: ask.Memory, Message: "whatever"}, cove.Exhausted, "SQL_EXECUTION_ERROR", "the query needs more than the 512 MB that this session has"},
		{ask.Fault{Kind: ask.File, Message: "no space"}, cove.Unavailable, "RUNNER_INTERNAL_ERROR", "no space"},
		{ask.Fault{Kind: ask.Internal, Message: "oh"}, cove.Unavailable, "RUNNER_INTERNAL_ERROR", "oh"},
		{ask.Fault{Kind: ask.BadRequest, Message: "oh"}, cove.Unavailable, "RUNNER_INTERNAL_ERROR", "oh"},
		{ask.Fault{Kind: ask.Stopped, Message: "oh"}, cove.Unavailable, "RUNNER_INTERNAL_ERROR", "oh"},
		{ask.Fault{Kind: "new"}, cove.Unavailable, "RUNNER_INTERNAL_ERROR", "no known kind"},
	} {
		t.Run(string(c.fault.Kind), func(t *testing.T) {
			in := &puppet{play: honest(ask.VerbQuery, func(q *part, r *ask.Request) { q.say(r, ask.Answer{Fault: &c.fault}) })}
			h := loaded(t, in)
			_, err := h.Query(t.Context(), question)
			wantType(t, err, c.kind, c.says)
			if e, ok := errors.AsType[*cove.Error](err); !ok || e.Code != c.code || len(e.Message) > 2100 || strings.Contains(e.Message, "\x1b") {
				t.Errorf("got %.100v", err)
			} else if c.fault.Line > 0 && (e.Details["line"] != c.fault.Line || e.Details["column"] != c.fault.Column) {
				t.Errorf("the place is %v", e.Details)
			}
			if f, ok := errors.AsType[*duckdb.Fault](err); c.fault.Kind != "new" && (!ok || f.Kind != c.fault.Kind || f.Line < 0 || f.Column < 0) {
				t.Errorf("the fault is %+v", f)
			}
			if _, err := h.Parse(t.Context(), "SELECT 1"); err != nil || in.started() != 1 {
				t.Errorf("afterwards: %v, %d processes", err, in.started())
			}
		})
	}
}

// TestBadQuestions never reach a helper.
func TestBadQuestions(t *testing.T) {
	in := &puppet{play: honest("", nil)}
	h := loaded(t, in)
	for name, q := range map[string]duckdb.Question{
		"a NUL":     {SQL: "SELECT \x00", MaxRows: 1, MaxBytes: 1},
		"no UTF-8":  {SQL: "SELECT \xff", MaxRows: 1, MaxBytes: 1},
		"too long":  {SQL: strings.Repeat("x", 2<<20), MaxRows: 1, MaxBytes: 1},
		"no rows":   {SQL: "SELECT 1", MaxBytes: 1},
		"too many":  {SQL: "SELECT 1", MaxRows: 1 << 40, MaxBytes: 1},
		"no bytes":  {SQL: "SELECT 1", MaxRows: 1},
		"all bytes": {SQL: "SELECT 1", MaxRows: 1, MaxBytes: 1 << 40},
	} {
		_, err := h.Query(t.Context(), q)
		if wantType(t, err, "SQL_EXECUTION_ERROR"); cove.CodeOf(err) != cove.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := h.Frame(t.Context(), question, "relative"); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("a frame somewhere: %v", err)
	}
	if _, err := h.Parse(t.Context(), "\x00"); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("a tree of nothing: %v", err)
	}
	for name, table := range map[string]duckdb.Table{
		"no name":       {Path: "/x.csv", Format: duckdb.CSV},
		"no format":     {Name: "x", Path: "/x.csv"},
		"a path":        {Name: "x", Path: "x/../y.csv", Format: duckdb.JSON},
		"DuckDB's name": {Schema: "pg_catalog", Name: "x", Path: "/x.csv", Format: duckdb.Parquet},
	} {
		_, err := h.Load(t.Context(), []duckdb.Table{table})
		if wantType(t, err, "INVALID_INPUT"); cove.CodeOf(err) != cove.Invalid {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := h.Describe(t.Context(), []duckdb.Table{table}, 1); cove.CodeOf(err) != cove.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if rows, err := h.Query(t.Context(), question); err != nil || in.started() != 1 {
		t.Errorf("a good one: %+v, %v, %d processes", rows, err, in.started())
	}
}

// TestAt: a place has one helper, whoever asks for it.
func TestAt(t *testing.T) {
	d, in := duckdb.New(cove.Tool{Name: "cove-duckdb"}, duckdb.Limits{}), &puppet{play: honest("", nil)}
	place := cove.RunSandbox{Sandbox: puppetSandbox{in}, Memory: 256 * cove.MiB, CPUs: 1.5, Mounted: true, Keep: &sync.Map{}}
	var all sync.WaitGroup
	helpers := make([]*duckdb.Helper, 10)
	for i := range helpers {
		all.Go(func() {
			h, err := d.At(t.Context(), place)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := h.Parse(t.Context(), "SELECT 1"); err != nil {
				t.Error(err)
			}
			helpers[i] = h
		})
	}
	all.Wait()
	for _, h := range helpers {
		if h != helpers[0] {
			t.Error("there is more than one helper")
		}
	}
	if o := in.parts[0].opened; in.started() != 1 || in.parts[0].argv[0] != "/opt/cove/cove-duckdb" || o.Memory != 256<<20 || o.Threads != 1 {
		t.Errorf("%d processes, the first %v with %+v", in.started(), in.parts[0].argv, in.parts[0].opened)
	}
	helpers[0].Close(t.Context())

	place.Keep, in.refuse = &sync.Map{}, errGone
	_, err := d.At(t.Context(), place)
	if wantType(t, err, cove.RunUnavailable); !errors.Is(err, errGone) {
		t.Errorf("a place that starts nothing: %v", err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	place.Mounted, in.refuse = false, nil
	if _, err := d.At(gone, place); err == nil {
		t.Error("a place without the executable")
	}
	place.Keep.Store("duckdb", 7)
	if _, err := d.At(t.Context(), place); cove.CodeOf(err) != cove.Internal {
		t.Errorf("a place that is used otherwise: %v", err)
	}
	if duckdb.TypeOf(nil) != "" {
		t.Error("nothing has a type")
	}
	place.Keep, place.Mounted, place.Memory = &sync.Map{}, true, cove.MiB
	_, err = d.At(t.Context(), place)
	wantType(t, err, cove.RunSQLFailed, "DuckDB needs more than the 1 MB")
}

// TestQueue: one at a time, and no more than may wait.
func TestQueue(t *testing.T) {
	asked, goOn := make(chan struct{}), make(chan struct{})
	in := &puppet{play: honest(ask.VerbQuery, func(q *part, r *ask.Request) {
		asked <- struct{}{}
		<-goOn
		q.behave(r)
	})}
	h, err := duckdb.New(cove.Tool{}, duckdb.Limits{Waiting: 1}).Open(t.Context(), in, options)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(t.Context())
	if _, err := h.Load(t.Context(), orders); err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	both.Go(func() { _, _ = h.Query(t.Context(), question) })
	<-asked
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := h.Query(gone, question); !errors.Is(err, context.Canceled) {
		t.Errorf("who left while waiting: %v", err)
	}
	waits := make(chan struct{})
	both.Go(func() {
		close(waits)
		if _, err := h.Query(t.Context(), question); err != nil {
			t.Error(err)
		}
	})
	<-waits
	for h.Waiting() < 2 {
		if t.Context().Err() != nil {
			t.Fatal("nobody waits")
		}
	}
	_, err = h.Query(t.Context(), question)
	if cove.CodeOf(err) != cove.Exhausted || cove.ReasonOf(err) != cove.ReasonQueueFull {
		t.Errorf("one too many: %v", err)
	}
	goOn <- struct{}{}
	<-asked
	goOn <- struct{}{}
	both.Wait()
}

func TestClose(t *testing.T) {
	asked := make(chan struct{})
	in := &puppet{play: honest(ask.VerbQuery, func(*part, *ask.Request) { close(asked) })}
	h := loaded(t, in)
	got := make(chan error)
	go func() {
		_, err := h.Query(t.Context(), question)
		got <- err
	}()
	<-asked
	h.Close(t.Context())
	if err := <-got; cove.CodeOf(err) != cove.Canceled {
		t.Errorf("what was under way: %v", err)
	}
	h.Close(t.Context())
	if _, err := h.Query(t.Context(), question); cove.CodeOf(err) != cove.Canceled || h.Alive() {
		t.Errorf("after the end: %v", err)
	}
}
