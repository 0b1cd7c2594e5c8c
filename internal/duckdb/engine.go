package duckdb

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// Helper is DuckDB in one place. Its methods are safe for concurrent use; questions
// are answered one after the other, and too many that wait are Exhausted.
//
// Errors of a question carry the type of [cove.RunError] that they are: see
// [TypeOf]. What the engine itself says against it is a [Fault] in their chain.
type Helper struct {
	limits Limits
	in     cove.Starter
	o      Options

	turn    chan struct{} // holds one element while a question is under way
	waiting atomic.Int64

	// Whoever has the turn:
	tables   []Table // what is to be loaded; nil before Load
	loaded   []Loaded
	fresh    bool          // tables were loaded since the last question
	loadTime time.Duration // and took so long

	mu     sync.Mutex
	proc   *process // guarded by mu; replaced by who has the turn; nil before the first
	closed bool     // guarded by mu
}

func newHelper(limits Limits, in cove.Starter, o Options) *Helper {
	o.Threads = max(o.Threads, 1)
	return &Helper{limits: limits, in: in, o: o, turn: make(chan struct{}, 1)}
}

// Load makes files tables, and nothing else can be asked about after it. Tables that
// are loaded already, with the same stamps, are not loaded again; others take their
// place. A file that cannot be read is the Problem of its table.
func (h *Helper) Load(ctx context.Context, tables []Table) ([]Loaded, error) {
	if err := checkTables(tables); err != nil {
		return nil, err
	}
	if err := h.take(ctx); err != nil {
		return nil, err
	}
	defer h.give()
	if h.tables == nil || !slices.EqualFunc(h.tables, tables, same) {
		if h.tables != nil {
			h.drop(ctx) // what has loaded once loads nothing else
		}
		h.tables, h.loaded = slices.Clone(tables), nil
		if h.tables == nil {
			h.tables = []Table{}
		}
	}
	if err := h.ready(ctx); err != nil {
		return nil, err
	}
	return slices.Clone(h.loaded), nil
}

// Describe looks into files: columns, rows, and so many samples of each. It is for
// helpers that have loaded nothing.
func (h *Helper) Describe(ctx context.Context, tables []Table, samples int) ([]Loaded, error) {
	if err := checkTables(tables); err != nil {
		return nil, err
	}
	if err := h.take(ctx); err != nil {
		return nil, err
	}
	defer h.give()
	if h.tables != nil {
		return nil, cove.Errorf(cove.Conflict, "a helper that has loaded tables looks into no other files")
	}
	ctx, cancel := h.within(ctx, h.limits.Load, "look into the files")
	defer cancel()
	a, err := h.ask(ctx, ask.Request{Verb: ask.VerbDescribe, Describe: &ask.Describe{Tables: wire(tables), Samples: samples}}, tablesNeed, 0)
	if err != nil {
		return nil, err
	}
	if why := checkLoaded(tables, a.Tables, samples); why != "" {
		return nil, h.spoilt(ctx, why)
	}
	return a.Tables, nil
}

// Query runs one SELECT over the tables that were loaded.
func (h *Helper) Query(ctx context.Context, q Question) (*Rows, error) {
	r := ask.Request{Verb: ask.VerbQuery, Query: &ask.Query{SQL: q.SQL, Schema: q.Schema, MaxRows: q.MaxRows, MaxBytes: int(q.MaxBytes)}}
	a, said, err := h.over(ctx, r, q)
	if err != nil {
		return nil, err
	}
	return &Rows{Answered: said, Rows: a.Rows}, nil
}

// Frame runs one SELECT and writes its rows to a file inside, which [FrameCode]
// reads. There must be no such file.
func (h *Helper) Frame(ctx context.Context, q Question, path string) (*Answered, error) {
	r := ask.Request{Verb: ask.VerbFrame, Frame: &ask.Frame{SQL: q.SQL, Schema: q.Schema, MaxRows: q.MaxRows, MaxBytes: q.MaxBytes, Path: path}}
	_, said, err := h.over(ctx, r, q)
	if err != nil {
		return nil, err
	}
	return &said, nil
}

// over asks about the tables that were loaded.
func (h *Helper) over(ctx context.Context, r ask.Request, q Question) (*ask.Rows, Answered, error) {
	if err := checkRequest(r); err != nil {
		return nil, Answered{}, err
	}
	if err := h.take(ctx); err != nil {
		return nil, Answered{}, err
	}
	defer h.give()
	if h.tables == nil {
		return nil, Answered{}, cove.Errorf(cove.Conflict, "nothing is loaded that could be asked about")
	}
	a, err := h.ask(ctx, r, queryNeeds, h.limits.Grace)
	if err != nil {
		return nil, Answered{}, err
	}
	if why := checkRows(a.Rows, q, r.Verb == ask.VerbFrame); why != "" {
		return nil, Answered{}, h.spoilt(ctx, why)
	}
	said := Answered{
		Columns: a.Rows.Columns, Count: a.Rows.Count, Truncated: a.Rows.Cut != "",
		Loaded: h.fresh, Load: h.loadTime, Query: time.Duration(a.Nanoseconds),
	}
	h.fresh, h.loadTime = false, 0
	return a.Rows, said, nil
}

// Parse returns the syntax tree of a text, and runs nothing of it.
func (h *Helper) Parse(ctx context.Context, sql string) (*Tree, error) {
	r := ask.Request{Verb: ask.VerbParse, Parse: &ask.Parse{SQL: sql}}
	if err := checkRequest(r); err != nil {
		return nil, err
	}
	if err := h.take(ctx); err != nil {
		return nil, err
	}
	defer h.give()
	a, err := h.ask(ctx, r, textNeeds, h.limits.Grace)
	if err != nil {
		return nil, err
	}
	if a.Tree == nil {
		return nil, h.spoilt(ctx, "it has no tree")
	}
	return a.Tree, nil
}

// Alive reports whether there is a process, with the tables that were loaded.
func (h *Helper) Alive() bool {
	p := h.process()
	return p != nil && p.alive()
}

// Close ends the helper, and what is asked of it. It waits a while for the end of the
// process; one that does not end then goes with its sandbox.
func (h *Helper) Close(ctx context.Context) {
	h.mu.Lock()
	h.closed = true
	p := h.proc
	h.mu.Unlock()
	if p != nil {
		p.kill(ctx)
	}
}

// take waits for the turn.
func (h *Helper) take(ctx context.Context) error {
	if h.waiting.Add(1) > int64(h.limits.Waiting)+1 { // one of them has the turn
		h.waiting.Add(-1)
		return cove.Errorf(cove.Exhausted, "%d questions wait for this DuckDB already", h.limits.Waiting).
			Reason(cove.ReasonQueueFull).With("retry_after", 1)
	}
	select {
	case h.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		h.waiting.Add(-1)
		return ctx.Err()
	}
}

func (h *Helper) give() {
	<-h.turn
	h.waiting.Add(-1)
}

func (h *Helper) process() *process {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.proc
}

// ready makes a process be there, with the tables in it. The caller has the turn.
func (h *Helper) ready(ctx context.Context) error {
	p := h.process()
	if p == nil || !p.alive() {
		h.loaded = nil
		var err error
		if p, err = h.begin(ctx); err != nil {
			return err
		}
	}
	if h.tables == nil || h.loaded != nil {
		return nil
	}
	return h.load(ctx, p)
}

// begin starts a process and opens the engine in it.
func (h *Helper) begin(ctx context.Context) (*process, error) {
	ctx, cancel := h.within(ctx, h.limits.Start, "start")
	defer cancel()
	if h.o.Memory < ask.MinMemory {
		return nil, starved("DuckDB needs", h.o.Memory)
	}
	p, err := h.launch(ctx)
	if err != nil {
		return nil, late(ctx, err)
	}
	a, err := h.exchange(ctx, p, ask.Request{Verb: ask.VerbOpen, Open: &ask.Open{Memory: int64(h.o.Memory), Threads: h.o.Threads}}, "DuckDB needs", 0)
	if err != nil {
		p.kill(ctx)
		return nil, err
	}
	if a.Opened == nil {
		return nil, h.spoilt(ctx, "it does not introduce itself")
	}
	if v := a.Opened.Protocol; v != ask.Version {
		p.kill(ctx)
		return nil, typed(cove.Errorf(cove.Unsupported, "the DuckDB in the sandbox is of another build: it speaks version %d of the protocol, and this cove %d", v, ask.Version).
			Remedy("use the executable that was built with this cove"), cove.RunUnavailable)
	}
	return p, nil
}

// launch starts a process, unless the helper is closed.
func (h *Helper) launch(ctx context.Context) (*process, error) {
	p, err := start(ctx, h.in, h.o.Path)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.proc = p
	over := h.closed
	h.mu.Unlock()
	if over {
		p.kill(ctx)
		return nil, closed()
	}
	return p, nil
}

// load loads the tables into a process that has none.
func (h *Helper) load(ctx context.Context, p *process) error {
	ctx, cancel := h.within(ctx, h.limits.Load, "load the tables")
	defer cancel()
	began := time.Now()
	a, err := h.exchange(ctx, p, ask.Request{Verb: ask.VerbLoad, Load: &ask.Load{Tables: wire(h.tables)}}, tablesNeed, 0)
	if err != nil {
		p.kill(ctx) // the door may be open still
		return err
	}
	if why := checkLoaded(h.tables, a.Tables, 0); why != "" {
		return h.spoilt(ctx, why)
	}
	if h.loaded = a.Tables; h.loaded == nil {
		h.loaded = []Loaded{}
	}
	h.fresh, h.loadTime = true, h.loadTime+time.Since(began)
	return nil
}

// ask asks the helper's process, which is made ready before. The caller has the turn.
func (h *Helper) ask(ctx context.Context, r ask.Request, needs string, grace time.Duration) (*ask.Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := h.ready(ctx); err != nil {
		return nil, err
	}
	return h.exchange(ctx, h.process(), r, needs, grace)
}

// exchange asks a process, and makes an error of a fault.
func (h *Helper) exchange(ctx context.Context, p *process, r ask.Request, needs string, grace time.Duration) (*ask.Answer, error) {
	a, err := p.ask(ctx, &r, grace)
	switch {
	case err != nil && h.isClosed():
		return nil, closed()
	case errors.Is(err, errStarved):
		return nil, starved(needs, h.o.Memory)
	case err != nil:
		return nil, late(ctx, err)
	case a.Fault != nil:
		return nil, failure(a.Fault, needs, h.o.Memory)
	}
	return a, nil
}

func (h *Helper) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// spoilt ends a process whose answer does not fit the question.
func (h *Helper) spoilt(ctx context.Context, why string) error {
	h.drop(ctx)
	return garbled(why)
}

// drop ends the process.
func (h *Helper) drop(ctx context.Context) {
	if p := h.process(); p != nil {
		p.kill(ctx)
	}
	h.loaded = nil
}

// within bounds what the helper does before it can be asked.
func (h *Helper) within(ctx context.Context, d time.Duration, what string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, typed(
		cove.Errorf(cove.Timeout, "DuckDB took longer than %s to %s", d, what).Remedy("use smaller files, or a larger flavor"), cove.RunUnavailable))
}

// late returns the reason of ours for the end of ctx, where it has one.
func late(ctx context.Context, err error) error {
	if cause, ok := errors.AsType[*cove.Error](context.Cause(ctx)); ok && errors.Is(err, ctx.Err()) {
		return cause
	}
	return err
}
