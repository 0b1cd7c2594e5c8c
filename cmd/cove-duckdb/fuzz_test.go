//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// FuzzRequest sends anything to one that has loaded a table. Whatever it is asked, it
// answers in frames that can be read, and the table stays as it was.
func FuzzRequest(f *testing.F) {
	for _, r := range []ask.Request{
		{ID: 9, Verb: ask.VerbQuery, Query: &ask.Query{SQL: "SELECT * FROM orders, range(3)", MaxRows: 5, MaxBytes: 50}},
		{ID: 9, Verb: ask.VerbQuery, Query: &ask.Query{SQL: "DELETE FROM orders; SELECT [{'a': 'x'}]", MaxRows: 5, MaxBytes: 50}},
		{ID: 9, Verb: ask.VerbParse, Parse: &ask.Parse{SQL: "SELECT a.b['x'] FROM (VALUES (1)) t(a)"}},
		{ID: 9, Verb: ask.VerbStop, Stop: &ask.Stop{ID: 10}},
		{ID: 9, Verb: ask.VerbOpen, Open: &ask.Open{Memory: 1 << 30, Threads: 1}},
		{ID: 9, Verb: ask.VerbLoad, Load: &ask.Load{Tables: []ask.Table{{Name: "x", Path: "/etc/passwd", Format: ask.CSV}}}},
		{ID: 9, Verb: ask.VerbDescribe, Describe: &ask.Describe{Samples: 1}},
	} {
		b, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("{}"))
	s := newSession(func(int64, int) error { return nil })
	for i, r := range []ask.Request{{Verb: ask.VerbOpen, Open: &ask.Open{Memory: 1 << 28, Threads: 1}}, {Verb: ask.VerbLoad, Load: &ask.Load{}}} {
		r.ID = uint64(i + 1)
		if i == 1 {
			if err := s.conn.Exec("CREATE TABLE orders AS SELECT 1 AS id, 'paid' AS status"); err != nil {
				f.Fatal(err)
			}
		}
		if a := s.answer(&r); a.Fault != nil {
			f.Fatal(a.Fault)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		frames := append(fmt.Appendf(nil, "%08d", len(body)), body...) // those are tried where they are read
		// One session for all: what one leaves behind, another finds.
		s.last = 0
		var out bytes.Buffer
		timer := time.AfterFunc(100*time.Millisecond, func() {
			for id := range uint64(20) {
				s.work.stop(id)
			}
		})
		err := serve(bytes.NewReader(frames), &out, s)
		timer.Stop()
		if errors.Is(err, errBroken) {
			t.Fatalf("the engine broke on %q: %s", frames, &out)
		}
		for {
			var a ask.Answer
			if err := ask.Read(&out, &a); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if a.Rows != nil {
				for _, row := range a.Rows.Rows {
					if !json.Valid(row) {
						t.Fatalf("%q is not JSON", row)
					}
				}
			}
		}
		s.last, s.work.last, s.work.early = 0, 0, nil
		a := s.answer(&ask.Request{ID: 1, Verb: ask.VerbQuery, Query: &ask.Query{SQL: "SELECT count(*), min(status) FROM orders", MaxRows: 1, MaxBytes: 100}})
		if a.Fault != nil || string(a.Rows.Rows[0]) != `[1,"paid"]` {
			t.Fatalf("after %q: %+v", frames, a)
		}
		s.work.last = 0
	})
}
