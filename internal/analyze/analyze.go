package analyze

import (
	"context"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/pypolicy/fact"
)

// Bounds on the work in one place.
const (
	maxAtOnce  = 2           // processes, and so requests that are looked at
	maxWaiting = 64          // requests that wait
	wallLimit  = time.Minute // for one request; its child has 2 s of the CPU
)

// Analyzer implements [cove.Analyzer] for Python. Its methods are safe for
// concurrent use. It has nothing to close: its processes end with the places they
// were started in.
type Analyzer struct {
	mu     sync.Mutex
	places map[cove.Starter]*place // guarded by mu; those with a process or a request
}

var _ cove.Analyzer = (*Analyzer)(nil)

// New returns an Analyzer that has started nothing.
func New() *Analyzer { return &Analyzer{places: map[cove.Starter]*place{}} }

// place is what an Analyzer has in one sandbox.
type place struct {
	turns chan struct{} // one element for each request that is looked at

	// guarded by Analyzer.mu
	users int       // requests and processes
	queue int       // requests
	idle  []*worker // processes that wait
}

// Analyze implements [cove.Analyzer]. The process it starts in the sandbox stays
// for the next request.
func (a *Analyzer) Analyze(ctx context.Context, in cove.Starter, language, code string) (*cove.SecurityReport, error) {
	if l := cove.Language(language); l != "python" {
		return nil, cove.Errorf(cove.Unsupported, "only Python code can be looked into, not %.40q", l)
	}
	var report *cove.SecurityReport
	err := a.look(ctx, in, askImports, code, func(got answer) (err error) {
		report, err = got.report()
		return err
	})
	return report, err
}

// Facts tells what stands in Python code, for a policy. It works as Analyze does,
// and needs a place like that.
func (a *Analyzer) Facts(ctx context.Context, in cove.Starter, code string) (*fact.Report, error) {
	var report *fact.Report
	err := a.look(ctx, in, askFacts, code, func(got answer) (err error) {
		report, err = got.facts()
		return err
	})
	return report, err
}

// look has a process look at code and hands its answer on. A process whose answer is
// not taken is ended.
func (a *Analyzer) look(ctx context.Context, in cove.Starter, what, code string, take func(answer) error) error {
	p, err := a.enter(in)
	if err != nil {
		return err
	}
	defer a.leave(in, p, true)
	select {
	case p.turns <- struct{}{}:
		defer func() { <-p.turns }()
	case <-ctx.Done():
		return ctx.Err()
	}
	w, err := a.worker(ctx, in, p)
	if err != nil {
		return err
	}
	got, err := w.ask(ctx, what, code)
	if err == nil {
		err = take(got)
	}
	if err != nil {
		w.kill(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	p.idle = append(p.idle, w)
	return nil
}

func (a *Analyzer) enter(in cove.Starter) (*place, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.places[in]
	if p == nil {
		p = &place{turns: make(chan struct{}, maxAtOnce)}
		a.places[in] = p
	}
	if p.queue >= maxWaiting {
		return nil, cove.Errorf(cove.Exhausted, "%d pieces of code wait to be looked at already", maxWaiting).
			Reason(cove.ReasonQueueFull).With("retry_after", 1)
	}
	p.users++
	p.queue++
	return p, nil
}

// leave ends a request or a process in a place, and forgets a place without any.
func (a *Analyzer) leave(in cove.Starter, p *place, request bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.users--; request {
		p.queue--
	}
	if p.users == 0 && a.places[in] == p {
		delete(a.places, in)
	}
}

// worker returns a process that is free, or starts one.
func (a *Analyzer) worker(ctx context.Context, in cove.Starter, p *place) (*worker, error) {
	for {
		a.mu.Lock()
		n := len(p.idle)
		if n == 0 {
			p.users++
			a.mu.Unlock()
			return start(ctx, in, func() { a.leave(in, p, false) })
		}
		w := p.idle[n-1]
		p.idle = p.idle[:n-1]
		a.mu.Unlock()
		if w.alive() {
			return w, nil
		}
	}
}
