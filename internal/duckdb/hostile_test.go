package duckdb_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// TestAnswersAreNotBelieved: what is not of the protocol, or does not fit the
// question, ends the helper, and a fresh one answers the next question.
func TestAnswersAreNotBelieved(t *testing.T) {
	result := func(columns int, count int, rows ...string) ask.Answer {
		r := &ask.Rows{Count: count}
		for range columns {
			r.Columns = append(r.Columns, ask.Column{Name: "c", Type: "BIGINT"})
		}
		for _, row := range rows {
			r.Rows = append(r.Rows, json.RawMessage(row))
		}
		return ask.Answer{Rows: r}
	}
	with := func(a ask.Answer, change func(*ask.Rows)) ask.Answer {
		change(a.Rows)
		return a
	}
	says := func(a ask.Answer) func(*part, *ask.Request) {
		return func(q *part, r *ask.Request) { q.say(r, a) }
	}
	raw := func(text string) func(*part, *ask.Request) {
		return func(q *part, _ *ask.Request) { q.raw(text) }
	}
	framed := func(text string) func(*part, *ask.Request) {
		return func(q *part, _ *ask.Request) { q.framed(text) }
	}
	for name, lie := range map[string]func(*part, *ask.Request){
		"garbage":          raw("Traceback (most recent call last)"),
		"a gibibyte":       flood,
		"a long frame":     raw("99999999"),
		"just too long":    raw(fmt.Sprintf("%08d", ask.MaxFrame+1)),
		"an empty frame":   raw("00000000"),
		"a negative frame": raw("-0000005hello"),
		"no JSON":          framed("hello"),
		"half of one":      framed(`{"id":3,`),
		"another kind":     framed(`[1,2,3]`),
		"a deep one":       framed(`{"id":3,"rows":{"rows":[` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `]}}`),
		"no UTF-8":         framed("{\"id\":3,\"rows\":{\"columns\":[{\"name\":\"\xff\"}],\"count\":0}}"),
		"a number beyond":  framed(`{"id":3,"rows":{"columns":[{"name":"x"}],"count":1e400}}`),
		"another id":       framed(`{"id":2,"rows":{"columns":[{"name":"x"}],"count":0}}`),
		"no id":            framed(`{"rows":{"columns":[{"name":"x"}],"count":0}}`),
		"a negative time":  framed(`{"id":3,"ns":-1,"rows":{"columns":[{"name":"x"}],"count":0}}`),
		"nothing":          says(ask.Answer{}),
		"something else":   says(ask.Answer{Tree: &ask.Tree{}}),
		"no column":        says(result(0, 0)),
		"fewer rows":       says(result(1, 2, "[1]")),
		"more rows":        says(result(1, 1, "[1]", "[2]")),
		"a negative count": says(result(1, -1)),
		"too many rows":    says(result(1, 11, strings.Split(strings.TrimSuffix(strings.Repeat("[1] ", 11), " "), " ")...)),
		"a narrow row":     says(result(2, 1, "[1]")),
		"a wide row":       says(result(1, 1, "[1,2]")),
		"an empty row":     says(result(1, 1, "[]")),
		"no row":           says(result(1, 1, "7")),
		"an object":        says(result(1, 1, `{"a":1}`)),
		"long rows":        says(result(1, 1, `["`+strings.Repeat("x", 1000)+`"]`)),
		"many columns":     says(result(ask.MaxColumns+1, 0)),
		"a long name":      says(with(result(1, 0), func(r *ask.Rows) { r.Columns[0].Name = strings.Repeat("x", 2000) })),
		"a long type":      says(with(result(1, 0), func(r *ask.Rows) { r.Columns[0].Type = strings.Repeat("x", 9000) })),
		"a strange cut":    says(with(result(1, 0), func(r *ask.Rows) { r.Cut = "some" })),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := &puppet{play: honest(ask.VerbQuery, func(q *part, r *ask.Request) {
				if q.number == 1 {
					lie(q, r)
					<-q.killed
					return
				}
				q.behave(r)
			})}
			h := loaded(t, in)
			rows, err := h.Query(t.Context(), question)
			wantType(t, err, cove.RunInternalError, "cannot be understood")
			if cove.CodeOf(err) != cove.Unavailable || cove.RemedyOf(err) == "" || h.Alive() {
				t.Errorf("got %+v, %v, alive: %v", rows, err, h.Alive())
			}
			if rows, err := h.Query(t.Context(), question); err != nil || !rows.Loaded || in.started() != 2 {
				t.Errorf("the next question: %+v, %v, %d processes", rows, err, in.started())
			}
		})
	}
}

// flood says far more than anybody may.
func flood(q *part, _ *ask.Request) {
	piece := bytes.Repeat([]byte("0"), 1<<20)
	for range 1 << 10 {
		_, _ = q.out.Write(piece)
	}
}

// TestOtherAnswersAreNotBelieved either.
func TestOtherAnswersAreNotBelieved(t *testing.T) {
	table := func(change func(*ask.Loaded)) ask.Answer {
		l := ask.Loaded{Schema: "shop", Name: "orders", Columns: []ask.Column{{Name: "a", Type: "BIGINT"}}, Rows: 3, Samples: []json.RawMessage{json.RawMessage("[1]")}}
		change(&l)
		return ask.Answer{Tables: []ask.Loaded{l}}
	}
	for _, c := range []struct {
		name string
		verb ask.Verb
		say  ask.Answer
	}{
		{"nobody", ask.VerbOpen, ask.Answer{}},
		{"no table", ask.VerbLoad, ask.Answer{}},
		{"another table", ask.VerbLoad, table(func(l *ask.Loaded) { l.Name = "x" })},
		{"another dataset", ask.VerbLoad, table(func(l *ask.Loaded) { l.Schema = "x" })},
		{"two tables", ask.VerbLoad, ask.Answer{Tables: make([]ask.Loaded, 2)}},
		{"a sample that nobody asked for", ask.VerbLoad, table(func(*ask.Loaded) {})},
		{"negative rows", ask.VerbDescribe, table(func(l *ask.Loaded) { l.Rows = -1 })},
		{"more samples than rows", ask.VerbDescribe, table(func(l *ask.Loaded) { l.Rows = 0 })},
		{"too many samples", ask.VerbDescribe, table(func(l *ask.Loaded) { l.Samples = append(l.Samples, l.Samples[0], l.Samples[0]) })},
		{"a wide sample", ask.VerbDescribe, table(func(l *ask.Loaded) { l.Samples[0] = json.RawMessage("[1,2]") })},
		{"a long name", ask.VerbDescribe, table(func(l *ask.Loaded) { l.Columns[0].Name = strings.Repeat("x", 2000) })},
		{"no table at all", ask.VerbDescribe, ask.Answer{}},
		{"no tree", ask.VerbParse, ask.Answer{}},
		{"a frame with rows", ask.VerbFrame, ask.Answer{Rows: &ask.Rows{Columns: []ask.Column{{Name: "a"}}, Count: 1, Rows: []json.RawMessage{json.RawMessage("[1]")}}}},
		{"a long frame", ask.VerbFrame, ask.Answer{Rows: &ask.Rows{Columns: []ask.Column{{Name: "a"}}, Count: 11}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := &puppet{play: honest(c.verb, func(q *part, r *ask.Request) { q.say(r, c.say) })}
			h, err := duckdb.New(cove.Tool{}, duckdb.Limits{}).Open(t.Context(), in, options)
			if c.verb != ask.VerbOpen && err != nil {
				t.Fatal(err)
			}
			if h != nil {
				defer h.Close(t.Context())
			}
			switch c.verb { //nolint:exhaustive // the others have a test of their own
			case ask.VerbLoad:
				_, err = h.Load(t.Context(), orders)
			case ask.VerbDescribe:
				_, err = h.Describe(t.Context(), orders, 2)
			case ask.VerbParse:
				_, err = h.Parse(t.Context(), "SELECT 1")
			case ask.VerbFrame:
				if _, err := h.Load(t.Context(), orders); err != nil {
					t.Fatal(err)
				}
				_, err = h.Frame(t.Context(), question, "/tmp/x")
			}
			if wantType(t, err, cove.RunInternalError, "cannot be understood"); h != nil && h.Alive() {
				t.Error("the helper is used on")
			}
		})
	}
}

func TestAnotherBuild(t *testing.T) {
	in := &puppet{play: honest(ask.VerbOpen, func(q *part, r *ask.Request) {
		q.say(r, ask.Answer{Opened: &ask.Opened{Protocol: ask.Version + 1}})
	})}
	_, err := duckdb.New(cove.Tool{}, duckdb.Limits{}).Open(t.Context(), in, options)
	if wantType(t, err, cove.RunUnavailable, "another build"); cove.CodeOf(err) != cove.Unsupported {
		t.Error(err)
	}
}

// TestNobodyAsked: what a helper says by itself ends it, at once. The answer before it
// counts, whichever of them the host notices first.
func TestNobodyAsked(t *testing.T) {
	for name, more := range map[string]string{
		"a second answer": "0000000400000", "one byte": "0", "a newline": "\n", "a whole frame": `00000040{"id":3,"rows":{"columns":[],"count":0}}`,
	} {
		t.Run(name, func(t *testing.T) {
			for range 100 {
				speaksOn(t, more)
			}
		})
	}
}

// speaksOn asks a helper that says more after its answer.
func speaksOn(t *testing.T, more string) {
	t.Helper()
	in := &puppet{play: honest(ask.VerbQuery, func(q *part, r *ask.Request) {
		q.behave(r)
		if q.number == 1 {
			q.raw(more)
			<-q.killed
		}
	})}
	h := loaded(t, in)
	if _, err := h.Query(t.Context(), question); err != nil {
		t.Fatal(err)
	}
	<-in.parts[0].done
	if rows, err := h.Query(t.Context(), question); err != nil || !rows.Loaded {
		t.Fatalf("the next question: %+v, %v", rows, err)
	}
}

// TestEnds: how a helper that ends is told of.
func TestEnds(t *testing.T) {
	killed := cove.Result{Outcome: cove.Signaled, ExitCode: 137, Signal: "KILL"}
	for _, c := range []struct {
		name   string
		result cove.Result
		failed error
		stderr string
		half   bool
		kind   string
		says   string
		code   cove.Code
	}{
		{name: "by itself", result: cove.Result{Outcome: cove.Exited, ExitCode: 3}, stderr: "panic: \x1bhelp\ngoroutine 1", kind: cove.RunInternalError, says: "ended by itself (exit code 3): panic: help", code: cove.Unavailable},
		{name: "in a frame", result: cove.Result{Outcome: cove.Exited, ExitCode: 2}, half: true, kind: cove.RunInternalError, says: "exit code 2", code: cove.Unavailable},
		{name: "by a signal", result: killed, kind: cove.RunInternalError, says: "signal KILL", code: cove.Unavailable},
		{name: "by somebody", result: cove.Result{Outcome: cove.Killed, ExitCode: 137}, kind: cove.RunUnavailable, says: "ended with the sandbox", code: cove.Unavailable},
		{name: "of memory", result: cove.Result{Outcome: cove.OutOfMemory, ExitCode: 137, Signal: "KILL"}, kind: cove.RunSQLFailed, says: "the query needs more than the 512 MB that this session has", code: cove.Exhausted},
		{name: "of memory, says Go", result: cove.Result{Outcome: cove.Exited, ExitCode: 2}, stderr: "fatal error: runtime: out of memory", kind: cove.RunSQLFailed, says: "512 MB", code: cove.Exhausted},
		{name: "of memory, says C++", result: cove.Result{Outcome: cove.Signaled, ExitCode: 134, Signal: "ABRT"}, stderr: "terminate called after throwing an instance of 'std::bad_alloc'", kind: cove.RunSQLFailed, says: "512 MB", code: cove.Exhausted},
		{name: "is not there", result: cove.Result{Outcome: cove.Exited, ExitCode: 127}, kind: cove.RunUnavailable, says: "not in the sandbox", code: cove.Unsupported},
		{name: "cannot run", result: cove.Result{Outcome: cove.Exited, ExitCode: 126}, kind: cove.RunUnavailable, says: "cannot run there", code: cove.Unsupported},
		{name: "with its sandbox", failed: errGone, kind: cove.RunUnavailable, says: "the sandbox is gone", code: cove.Internal},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := &puppet{play: honest(ask.VerbQuery, func(q *part, r *ask.Request) {
				if q.number > 1 {
					q.behave(r)
					return
				}
				if c.half {
					q.raw("00000100{")
				}
				_, _ = q.err.Write([]byte(c.stderr + strings.Repeat("\nmore", 1<<20)))
				q.result, q.failed = c.result, c.failed
			})}
			h := loaded(t, in)
			_, err := h.Query(t.Context(), question)
			if wantType(t, err, c.kind, c.says); cove.CodeOf(err) != c.code || len(err.Error()) > 3000 {
				t.Errorf("got %v", err)
			}
			if rows, err := h.Query(t.Context(), question); err != nil || !rows.Loaded {
				t.Errorf("the next question: %+v, %v", rows, err)
			}
		})
	}
}

// TestMemoryWhileLoading is told of in words of its own.
func TestMemoryWhileLoading(t *testing.T) {
	in := &puppet{play: honest(ask.VerbLoad, func(q *part, _ *ask.Request) { q.result.Outcome = cove.OutOfMemory })}
	h, err := duckdb.New(cove.Tool{}, duckdb.Limits{}).Open(t.Context(), in, options)
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Load(t.Context(), orders)
	wantType(t, err, cove.RunSQLFailed, "the tables need more than the 512 MB that this session has")
}

// TestLastWords: an answer that was given counts, even if it was the last thing.
func TestLastWords(t *testing.T) {
	in := &puppet{play: honest(ask.VerbQuery, func(q *part, r *ask.Request) {
		q.behave(r)
		q.result.ExitCode = 1
	})}
	h := loaded(t, in)
	if rows, err := h.Query(t.Context(), question); err != nil || rows.Count != 2 {
		t.Errorf("got %+v, %v", rows, err)
	}
}

func TestBrokenPlaces(t *testing.T) {
	d := duckdb.New(cove.Tool{}, duckdb.Limits{})
	if _, err := d.Open(t.Context(), &puppet{refuse: errGone}, options); !errors.Is(err, errGone) {
		t.Errorf("a place that starts nothing: %v", err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := d.Open(gone, &puppet{}, options); !errors.Is(err, context.Canceled) {
		t.Errorf("who has left: %v", err)
	}
	in := &puppet{play: honest("", nil)}
	h := loaded(t, in)
	if _, err := h.Query(gone, question); !errors.Is(err, context.Canceled) || !h.Alive() {
		t.Errorf("who has left: %v", err)
	}
}

func TestWidth(t *testing.T) {
	for row, want := range map[string]int{
		`[]`: 0, ` []`: -1, `[ ]`: 0, `[1]`: 1, `[[]]`: 1, `[{}]`: 1, `[[],[]]`: 2, `["a,]","\",[",3]`: 3, `[{"a":[1,2,{"b":","}]},null]`: 2,
		`["\\",1]`: 2, `[true,false,null,-1.5e3]`: 4, `7`: -1, `{}`: -1, `"[1]"`: -1, ``: -1, "[\n1 ,\t2 ]": 2, `[""]`: 1,
	} {
		if got := duckdb.Width(json.RawMessage(row)); got != want {
			t.Errorf("%s: %d values, want %d", row, got, want)
		}
	}
}

// FuzzWidth: it counts as a decoder does.
func FuzzWidth(f *testing.F) {
	f.Add([]byte(`[1,"a,\"[",{"b":[]},[[]]]`))
	f.Fuzz(func(t *testing.T, row []byte) {
		if !json.Valid(row) || len(row) == 0 || row[0] != '[' {
			return
		}
		var all []json.RawMessage
		if err := json.Unmarshal(row, &all); err != nil {
			t.Skip(err)
		}
		if got := duckdb.Width(row); got != len(all) {
			t.Errorf("%s: %d values, want %d", row, got, len(all))
		}
	})
}
