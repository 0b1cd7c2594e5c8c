package duckdb_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
	"github.com/cove-sandbox/cove/internal/testkit/program"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(program.Exit)) }

// puppet is a place whose helper is a function of the test.
type puppet struct {
	play   func(p *part)
	refuse error // what Start says

	mu    sync.Mutex
	parts []*part
}

// part is one process of a puppet.
type part struct {
	number   int // from 1
	in       *io.PipeReader
	out, err io.Writer
	argv     []string
	env      map[string]string
	opened   ask.Open
	result   cove.Result
	failed   error
	immortal atomic.Bool
	killed   chan struct{}
	done     chan struct{}
	once     sync.Once
}

// Start implements [cove.Starter].
func (p *puppet) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	if p.refuse != nil {
		return nil, p.refuse
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	in, w := io.Pipe()
	go func() {
		if cmd.Stdin == nil {
			_ = w.Close()
			return
		}
		_, err := io.Copy(w, cmd.Stdin)
		_ = w.CloseWithError(err)
	}()
	p.mu.Lock()
	q := &part{
		number: len(p.parts) + 1, in: in, out: cmd.Stdout, err: cmd.Stderr, argv: cmd.Argv, env: cmd.Env,
		killed: make(chan struct{}), done: make(chan struct{}), result: cove.Result{Outcome: cove.Exited},
	}
	p.parts = append(p.parts, q)
	p.mu.Unlock()
	go func() {
		defer close(q.done)
		p.play(q)
		_ = in.Close()
	}()
	return q, nil
}

// puppetSandbox is a sandbox that can do nothing but start puppets.
type puppetSandbox struct{ *puppet }

func (puppetSandbox) ID() cove.ID               { return "" }
func (puppetSandbox) Isolation() cove.Isolation { return cove.Isolation{} }
func (puppetSandbox) Files() cove.Files         { return nil }
func (puppetSandbox) Usage(context.Context) (cove.Usage, error) {
	return cove.Usage{}, nil
}
func (puppetSandbox) Destroy(context.Context) error { return nil }

func (p *puppet) started() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.parts)
}

// end ends all processes, as the end of a place does.
func (p *puppet) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.parts {
		q.die()
		<-q.done
	}
}

func (q *part) die() {
	q.once.Do(func() {
		close(q.killed)
		_ = q.in.Close()
	})
}

// Wait implements [cove.Process].
func (q *part) Wait(ctx context.Context) (cove.Result, error) {
	select {
	case <-q.done:
		return q.result, q.failed
	case <-ctx.Done():
		return cove.Result{}, ctx.Err()
	}
}

// Signal implements [cove.Process].
func (q *part) Signal(context.Context, cove.Signal) error { return nil }

// Kill implements [cove.Process].
func (q *part) Kill(context.Context) error {
	if !q.immortal.Load() {
		q.die()
	}
	return nil
}

// Resize implements [cove.Process].
func (q *part) Resize(context.Context, cove.WindowSize) error { return nil }

// next is the next request; nil at the end.
func (q *part) next() *ask.Request {
	var r ask.Request
	if err := ask.Read(q.in, &r); err != nil {
		return nil
	}
	return &r
}

// say answers a request.
func (q *part) say(r *ask.Request, a ask.Answer) {
	a.ID = r.ID
	_ = ask.Write(q.out, a)
}

// raw says a text that may be anything.
func (q *part) raw(text string) { _, _ = io.WriteString(q.out, text) }

// framed says a text in a frame.
func (q *part) framed(text string) { q.raw(fmt.Sprintf("%08d%s", len(text), text)) }

// behave answers a request as a helper would: any text is answered with two rows.
func (q *part) behave(r *ask.Request) {
	switch r.Verb {
	case ask.VerbOpen:
		q.opened = *r.Open
		q.say(r, ask.Answer{Opened: &ask.Opened{Protocol: ask.Version, Engine: "v1"}})
	case ask.VerbLoad, ask.VerbDescribe:
		var tables []ask.Table
		if r.Load != nil {
			tables = r.Load.Tables
		} else {
			tables = r.Describe.Tables
		}
		a := ask.Answer{}
		for _, t := range tables {
			a.Tables = append(a.Tables, ask.Loaded{Schema: t.Schema, Name: t.Name, Columns: []ask.Column{{Name: "a", Type: "BIGINT"}}, Rows: 2})
		}
		q.say(r, a)
	case ask.VerbQuery:
		q.say(r, ask.Answer{Nanoseconds: 7, Rows: &ask.Rows{
			Columns: []ask.Column{{Name: "a", Type: "BIGINT"}, {Name: "b", Type: "VARCHAR"}},
			Rows:    []json.RawMessage{json.RawMessage(`[1,"x"]`), json.RawMessage(`[2,null]`)}, Count: 2,
		}})
	case ask.VerbFrame:
		q.say(r, ask.Answer{Rows: &ask.Rows{Columns: []ask.Column{{Name: "a", Type: "BIGINT"}}, Count: 2}})
	case ask.VerbParse:
		q.say(r, ask.Answer{Tree: &ask.Tree{Statements: []json.RawMessage{json.RawMessage(`{}`)}}})
	case ask.VerbStop, ask.VerbFunctions:
	}
}

// honest behaves to its end, except for one verb, which is left to the test. It then
// waits to be killed.
func honest(verb ask.Verb, then func(q *part, r *ask.Request)) func(*part) {
	return func(q *part) {
		for {
			r := q.next()
			if r == nil {
				<-q.killed
				return
			}
			if r.Verb != verb {
				q.behave(r)
				continue
			}
			if then(q, r); q.result != (cove.Result{Outcome: cove.Exited}) || q.failed != nil {
				return
			}
		}
	}
}

// options is what the helpers of tests have.
var options = duckdb.Options{Path: "/opt/cove/cove-duckdb", Memory: 512 * cove.MiB, Threads: 1}

var orders = []duckdb.Table{{Schema: "shop", Name: "orders", Path: "/data/shop/orders.csv", Format: duckdb.CSV, Stamp: "1"}}

var question = duckdb.Question{SQL: "SELECT a, b FROM orders", Schema: "shop", MaxRows: 10, MaxBytes: 1000}

// loaded opens a helper with tables in it, and ends it with the test.
func loaded(t *testing.T, in cove.Starter) *duckdb.Helper {
	t.Helper()
	h, err := duckdb.New(cove.Tool{}, duckdb.Limits{}).Open(t.Context(), in, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close(context.Background()) })
	if _, err := h.Load(t.Context(), orders); err != nil {
		t.Fatal(err)
	}
	return h
}

// wantType fails for an error that is not of the type, or has no advice.
func wantType(t *testing.T, err error, kind string, words ...string) {
	t.Helper()
	if got := duckdb.TypeOf(err); got != kind {
		t.Errorf("the error %v is of type %q, want %q", err, got, kind)
	}
	for _, w := range words {
		if !strings.Contains(fmt.Sprint(err), w) {
			t.Errorf("the error %v does not say %q", err, w)
		}
	}
}

var errGone = errors.New("the sandbox is gone")
