//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// peer speaks with a session that runs in the test itself, without a limit on the
// memory of the process.
type peer struct {
	t    *testing.T
	s    *session
	in   *io.PipeWriter
	out  *io.PipeReader
	id   uint64
	over chan error
}

// newPeer starts one that has been asked nothing.
func newPeer(t *testing.T) *peer {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &peer{t: t, s: newSession(func(int64, int) error { return nil }), in: inW, out: outR, over: make(chan error, 1)}
	go func() {
		err := serve(inR, outW, p.s)
		_ = inR.Close()
		_ = outW.Close()
		p.over <- err
	}()
	t.Cleanup(func() {
		_ = inW.Close()
		if err := <-p.over; err != nil && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("it ended with %v", err)
		}
	})
	return p
}

// openPeer starts one that is open.
func openPeer(t *testing.T) *peer {
	t.Helper()
	p := newPeer(t)
	got := p.ask(ask.Request{Verb: ask.VerbOpen, Open: &ask.Open{Memory: 1 << 30, Threads: 1}})
	if got.Fault != nil || got.Opened.Protocol != ask.Version || got.Opened.Engine == "" {
		t.Fatalf("open: %+v", got)
	}
	return p
}

// loadPeer starts one that has loaded the tables, without a problem.
func loadPeer(t *testing.T, tables ...ask.Table) *peer {
	t.Helper()
	p := openPeer(t)
	got := p.ask(ask.Request{Verb: ask.VerbLoad, Load: &ask.Load{Tables: tables}})
	if got.Fault != nil {
		t.Fatalf("load: %v", got.Fault)
	}
	for _, l := range got.Tables {
		if l.Problem != "" {
			t.Fatalf("load: %s", l.Problem)
		}
	}
	return p
}

// session is what it speaks with, for what only a test does.
func (p *peer) session() *session { return p.s }

// send asks without waiting, and returns the id.
func (p *peer) send(r ask.Request) uint64 {
	p.t.Helper()
	p.id++
	r.ID = p.id
	if err := ask.Write(p.in, r); err != nil {
		p.t.Fatal(err)
	}
	return r.ID
}

func (p *peer) receive() *ask.Answer {
	p.t.Helper()
	var a ask.Answer
	if err := ask.Read(p.out, &a); err != nil {
		p.t.Fatal(err)
	}
	return &a
}

func (p *peer) ask(r ask.Request) *ask.Answer {
	p.t.Helper()
	id := p.send(r)
	a := p.receive()
	if a.ID != id {
		p.t.Fatalf("the answer to %d is for %d", id, a.ID)
	}
	return a
}

func (p *peer) query(sql string) *ask.Answer {
	p.t.Helper()
	return p.ask(ask.Request{Verb: ask.VerbQuery, Query: &ask.Query{SQL: sql, MaxRows: 100, MaxBytes: 100_000}})
}

// rows runs a query that must go well.
func (p *peer) rows(sql string) []string {
	p.t.Helper()
	a := p.query(sql)
	if a.Fault != nil {
		p.t.Fatalf("%s: %+v", sql, a.Fault)
	}
	out := []string{}
	for _, row := range a.Rows.Rows {
		if !json.Valid(row) {
			p.t.Errorf("%s is not JSON", row)
		}
		out = append(out, string(row))
	}
	return out
}

// table writes a file and returns it as a table of its stem.
func table(t *testing.T, file, content string) ask.Table {
	t.Helper()
	path := filepath.Join(t.TempDir(), file)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	ext := filepath.Ext(file)
	return ask.Table{Name: file[:len(file)-len(ext)], Path: path, Format: ask.Format(ext[1:])}
}
