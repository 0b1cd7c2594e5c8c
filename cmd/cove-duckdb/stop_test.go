//go:build linux

package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

func (p *peer) stop(id uint64) {
	p.t.Helper()
	p.send(ask.Request{Verb: ask.VerbStop, Stop: &ask.Stop{ID: id}})
}

// endless are queries that end by themselves after the test, or never.
var endless = map[string]string{
	"a recursion without an end": "WITH RECURSIVE r AS (SELECT 1 a UNION ALL SELECT a FROM r) SELECT count(*) FROM r",
	"a cross join":               "SELECT count(*) FROM range(1000000) a, range(1000000) b, range(1000) c WHERE a.range + b.range + c.range = 7",
	"rows without an end":        "SELECT max(i) FROM range(1000000000000) r(i)",
}

func TestStop(t *testing.T) {
	p := loadPeer(t)
	for name, sql := range endless {
		id := p.send(ask.Request{Verb: ask.VerbQuery, Query: &ask.Query{SQL: sql, MaxRows: 1, MaxBytes: 100}})
		p.stop(id - 1) // another one: nothing happens
		p.stop(id)
		p.stop(id)
		if a := p.receive(); a.ID != id || a.Fault == nil || a.Fault.Kind != ask.Stopped {
			t.Errorf("%s: %+v", name, a)
		}
		if got := p.rows("SELECT 1"); got[0] != "[1]" {
			t.Errorf("after %s: %s", name, got)
		}
	}
	path := filepath.Join(t.TempDir(), "frame")
	id := p.send(ask.Request{Verb: ask.VerbFrame, Frame: &ask.Frame{SQL: "FROM range(1000000000000)", MaxRows: ask.MaxRows, MaxBytes: 1 << 40, Path: path}})
	p.stop(id)
	if a := p.receive(); a.Fault == nil || a.Fault.Kind != ask.Stopped {
		t.Errorf("a frame: %+v", a)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) > 0 {
		t.Errorf("it leaves %s", left)
	}
}

// One that waits is stopped before it begins, and the others are served.
func TestStopOfWhatWaits(t *testing.T) {
	p := loadPeer(t)
	first := p.send(ask.Request{Verb: ask.VerbQuery, Query: &ask.Query{SQL: endless["a cross join"], MaxRows: 1, MaxBytes: 100}})
	second := p.send(ask.Request{Verb: ask.VerbQuery, Query: &ask.Query{SQL: "SELECT 2", MaxRows: 1, MaxBytes: 100}})
	third := p.send(ask.Request{Verb: ask.VerbQuery, Query: &ask.Query{SQL: "SELECT 3", MaxRows: 1, MaxBytes: 100}})
	p.stop(second)
	p.stop(first)
	for _, want := range []struct {
		id   uint64
		kind ask.Kind
	}{{first, ask.Stopped}, {second, ask.Stopped}, {third, ""}} {
		a := p.receive()
		if a.ID != want.id || (a.Fault != nil) != (want.kind != "") || a.Fault != nil && a.Fault.Kind != want.kind {
			t.Errorf("%d: %+v", want.id, a)
		}
	}
}

func TestStopOfALoad(t *testing.T) {
	p := openPeer(t)
	big := filepath.Join(t.TempDir(), "big.parquet")
	if err := p.session().conn.Exec("COPY (SELECT i, hash(i) h FROM range(3000000) r(i)) TO '" + big + "' (FORMAT parquet)"); err != nil {
		t.Fatal(err)
	}
	id := p.send(ask.Request{Verb: ask.VerbLoad, Load: &ask.Load{Tables: []ask.Table{{Name: "big", Path: big, Format: ask.Parquet}, {Name: "more", Path: big, Format: ask.Parquet}}}})
	p.stop(id)
	if a := p.receive(); a.Fault == nil || a.Fault.Kind != ask.Stopped {
		t.Fatalf("%+v", a)
	}
	// The door is not closed, so nothing is asked any more.
	if a := p.query("SELECT 1"); a.Fault == nil || a.Fault.Kind != ask.BadRequest {
		t.Errorf("%+v", a)
	}
}

func TestWorkIsNotStoppedTwice(t *testing.T) {
	var w work
	w.stop(3) // before it begins
	for i := range uint64(20) {
		w.stop(100 + i)
	}
	if len(w.early) > ask.MaxWaiting+1 {
		t.Errorf("it keeps %d ids", len(w.early))
	}
	if !w.begin(2) || w.end() {
		t.Error("another one was stopped")
	}
	if w.begin(3) || !w.cut() || !w.end() || w.end() {
		t.Error("it was not stopped, or twice")
	}
	w.stop(3)
	if !w.begin(4) || w.end() {
		t.Error("the next one was stopped")
	}
	calls := make(interrupts, 1)
	w.begin(5)
	w.on(calls)
	w.stop(5)
	select {
	case <-calls:
	case <-time.After(time.Minute):
		t.Error("the engine was not asked")
	}
	if !w.end() {
		t.Error("it was not stopped")
	}
}

type interrupts chan struct{}

func (i interrupts) Interrupt() {
	select {
	case i <- struct{}{}:
	default:
	}
}
