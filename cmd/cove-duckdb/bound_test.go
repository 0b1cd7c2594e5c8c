//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

func TestRowsAreCut(t *testing.T) {
	p := loadPeer(t)
	for name, c := range map[string]struct {
		sql            string
		rows, bytes, n int
		cut            ask.Cut
	}{
		"all":                  {"FROM range(10)", 10, 100, 10, ""},
		"ten million rows":     {"FROM range(10000000)", 200, 65536, 200, ask.CutRows},
		"rows of a later part": {"FROM range(10000)", 5000, 65536, 5000, ask.CutRows},
		"bytes":                {"FROM range(1000000)", 1000, 100, 27, ask.CutBytes},
		"bytes to the last":    {"FROM range(10)", 10, 30, 10, ""},
		"one byte less":        {"FROM range(10)", 10, 29, 9, ask.CutBytes},
		"a long text":          {"SELECT repeat('x', 5000)", 10, 1025, 1, ask.CutCell},
		"a long list":          {"SELECT range(5000), 1", 10, 1025, 1, ask.CutCell},
		"long texts":           {"SELECT repeat('ü', 5000), repeat('\"', 5000), 7, repeat('🦆', 5000)", 10, 1025, 1, ask.CutCell},
		"a text of 100 MB":     {"SELECT repeat('x', 100000000)", 10, 1025, 1, ask.CutCell},
		"bytes of 100 MB":      {"SELECT repeat('x', 100000000)::BLOB", 10, 1025, 1, ask.CutCell},
		"a long document":      {`SELECT ('["' || repeat('x', 5000) || '"]')::JSON`, 10, 1025, 1, ask.CutCell},
		"a long second one":    {"SELECT repeat('x', (i * 5000)::INT) FROM range(3) r(i)", 10, 1025, 1, ask.CutBytes},
		"too many columns":     {"SELECT " + strings.Repeat("'some text', ", 200) + "1", 10, 1025, 0, ask.CutBytes},
	} {
		t.Run(name, func(t *testing.T) {
			a := p.ask(ask.Request{Verb: ask.VerbQuery, Query: &ask.Query{SQL: c.sql, MaxRows: c.rows, MaxBytes: c.bytes}})
			if a.Fault != nil {
				t.Fatal(a.Fault)
			}
			if a.Rows.Count != c.n || len(a.Rows.Rows) != c.n || a.Rows.Cut != c.cut {
				t.Errorf("%d rows, %d, cut %q", a.Rows.Count, len(a.Rows.Rows), a.Rows.Cut)
			}
			size, marked := 0, false
			for _, row := range a.Rows.Rows {
				size += len(row)
				marked = marked || strings.Contains(string(row), ask.CutMark)
				if !json.Valid(row) || !utf8.Valid(row) || strings.ContainsRune(string(row), utf8.RuneError) {
					t.Errorf("%.100s is not JSON", row)
				}
			}
			if size > c.bytes || marked != (c.cut == ask.CutCell) {
				t.Errorf("%d bytes, marked %v", size, marked)
			}
			if got := p.rows("SELECT 1"); got[0] != "[1]" {
				t.Error(got)
			}
		})
	}
}

func TestAnswerThatIsTooLarge(t *testing.T) {
	p := loadPeer(t)
	names := make([]string, 6)
	for i := range names {
		names[i] = fmt.Sprintf(`1 AS "%s%d"`, strings.Repeat("x", 150_000), i)
	}
	// The names alone, six times, do not fit.
	sql := "WITH t AS (SELECT " + strings.Join(names, ", ") + ") SELECT a.*, b.*, c.*, d.*, e.*, f.* FROM t a, t b, t c, t d, t e, t f"
	if a := p.query(sql); a.Fault == nil || a.Fault.Kind != ask.Large {
		t.Errorf("%+v", a.Fault)
	}
	if a := p.ask(ask.Request{Verb: ask.VerbParse, Parse: &ask.Parse{SQL: "SELECT 1 IN (" + strings.Repeat("1,", 100_000) + "1)"}}); a.Fault == nil || a.Fault.Kind != ask.Large {
		t.Errorf("%+v", a.Fault)
	}
	if got := p.rows("SELECT 1"); got[0] != "[1]" {
		t.Error(got)
	}
}

func TestOrder(t *testing.T) {
	query := ask.Request{Verb: ask.VerbQuery, Query: &ask.Query{SQL: "SELECT 1", MaxRows: 1, MaxBytes: 100}}
	frame := ask.Request{Verb: ask.VerbFrame, Frame: &ask.Frame{SQL: "SELECT 1", MaxRows: 1, MaxBytes: 100, Path: "/nonexistent/x"}}
	load := ask.Request{Verb: ask.VerbLoad, Load: &ask.Load{}}
	open := ask.Request{Verb: ask.VerbOpen, Open: &ask.Open{Memory: 1 << 30, Threads: 1}}
	parse := ask.Request{Verb: ask.VerbParse, Parse: &ask.Parse{SQL: "SELECT 1"}}
	refused := func(p *peer, r ask.Request, when string) {
		t.Helper()
		if a := p.ask(r); a.Fault == nil || a.Fault.Kind != ask.BadRequest {
			t.Errorf("%s %s: %+v", r.Verb, when, a)
		}
	}
	p := newPeer(t)
	for _, r := range []ask.Request{query, frame, load, parse, {Verb: ask.VerbFunctions}, {Verb: "nope"}, {Verb: ask.VerbQuery}} {
		refused(p, r, "before it is open")
	}
	if a := p.ask(open); a.Fault != nil {
		t.Fatal(a.Fault)
	}
	for _, r := range []ask.Request{open, query, frame} {
		refused(p, r, "before anything is loaded")
	}
	if a := p.ask(load); a.Fault != nil {
		t.Fatal(a.Fault)
	}
	for _, r := range []ask.Request{open, load} {
		refused(p, r, "a second time")
	}
	if a := p.ask(query); a.Fault != nil {
		t.Fatal(a.Fault)
	}
	p.id = 1
	refused(p, query, "with an old id")
}
