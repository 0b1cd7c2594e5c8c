package engine

import (
	"context"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// maxRuns is how many runs go on at once; more are Exhausted.
const maxRuns = 64

// runs is the part of the platform that answers questions to data.
type runs struct{ v view }

// runTable holds the runs under way.
type runTable struct {
	done sync.WaitGroup

	mu     sync.Mutex
	live   map[cove.ID]*liveRun // guarded by mu
	closed bool                 // guarded by mu
}

type liveRun struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

// Submit implements [cove.Runs].
func (p runs) Submit(ctx context.Context, req cove.RunRequest) (*cove.Run, error) {
	e := p.v.e
	a := action{Action: cove.Action{Verb: cove.RunSubmit}, data: e.contentOf(req.SQL + req.Python)}
	return act(ctx, p.v, a, func(ctx context.Context, st *step) (*cove.Run, error) {
		if e.cfg.Runner == nil {
			return nil, cove.Errorf(cove.Unsupported, "this build answers no data runs")
		}
		req = req.WithDefaults()
		if err := req.Validate(); err != nil {
			return nil, err
		}
		if _, err := e.tenants.check(ctx, p.v.p.Tenant); err != nil {
			return nil, err
		}
		key := req.IdempotencyKey
		req.IdempotencyKey = ""
		out, err := once(ctx, e, p.v.p, deed[*cove.Run]{
			key: key, verb: cove.RunSubmit, what: req,
			do: func(id cove.ID) (*cove.Run, cove.ID, error) {
				rec := &cove.Run{
					ID: id, Tenant: p.v.p.Tenant, Owner: p.v.p.Name, Request: req,
					State: cove.RunRunning, Node: e.cfg.Node, CreatedAt: time.Now(),
				}
				return rec, id, e.startRun(ctx, *rec)
			},
			again: func(id cove.ID) (*cove.Run, error) { return p.find(ctx, id) },
		})
		if err == nil {
			st.outcome.Data = madeSession(out.ID)
		}
		return out, err
	})
}

// startRun puts the record and answers the question in the background.
func (e *Engine) startRun(ctx context.Context, rec cove.Run) error {
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), rec.Request.Timeout)
	live := &liveRun{cancel: cancel, ended: make(chan struct{})}
	if err := e.runs.add(rec.ID, live); err != nil {
		cancel()
		return err
	}
	if err := e.cfg.Store.PutRun(ctx, &rec); err != nil {
		cancel()
		e.runs.remove(rec.ID)
		return err
	}
	e.runs.done.Go(func() {
		defer cancel()
		defer e.runs.remove(rec.ID)
		e.finishRun(work, rec)
	})
	return nil
}

// finishRun answers the question and keeps the answer.
func (e *Engine) finishRun(ctx context.Context, rec cove.Run) {
	answer, err := e.cfg.Runner.Run(ctx, rec.Request)
	if err != nil {
		answer = failedRun(err)
	}
	answer.Wall = time.Since(rec.CreatedAt)
	rec.Answer, rec.EndedAt, rec.State = answer, time.Now(), cove.RunFailed
	if answer.Status == "success" {
		rec.State = cove.RunSucceeded
	}
	if err := e.cfg.Store.PutRun(context.WithoutCancel(ctx), &rec); err != nil {
		e.cfg.Logger.ErrorContext(ctx, "put run", errAttr(err))
	}
}

// failedRun is the answer where the platform, not the question, failed.
func failedRun(err error) *cove.RunAnswer {
	kind, status := cove.RunInternalError, "error"
	switch cove.CodeOf(err) { //nolint:exhaustive // the rest is internal to the runner
	case cove.Timeout:
		kind, status = cove.RunTimeout, "timeout"
	case cove.Unavailable, cove.Exhausted, cove.Unsupported, cove.Canceled:
		kind = cove.RunUnavailable
	}
	return &cove.RunAnswer{Status: status, Error: &cove.RunError{Type: kind, Message: cove.MessageOf(err)}}
}

// Get implements [cove.Runs].
func (p runs) Get(ctx context.Context, id cove.ID) (*cove.Run, error) {
	a := action{Action: cove.Action{Verb: cove.RunGet}}
	return act(ctx, p.v, a, func(ctx context.Context, _ *step) (*cove.Run, error) { return p.find(ctx, id) })
}

// Wait implements [cove.Runs].
func (p runs) Wait(ctx context.Context, id cove.ID) (*cove.Run, error) {
	a := action{Action: cove.Action{Verb: cove.RunWait}}
	return act(ctx, p.v, a, func(ctx context.Context, _ *step) (*cove.Run, error) {
		if _, err := p.find(ctx, id); err != nil {
			return nil, err
		}
		if live := p.v.e.runs.get(id); live != nil {
			select {
			case <-live.ended:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return p.find(ctx, id)
	})
}

// Delete implements [cove.Runs].
func (p runs) Delete(ctx context.Context, id cove.ID) error {
	a := action{Action: cove.Action{Verb: cove.RunDelete}}
	return actDone(ctx, p.v, a, func(ctx context.Context, _ *step) error {
		if _, err := p.find(ctx, id); err != nil {
			return err
		}
		if live := p.v.e.runs.get(id); live != nil {
			live.cancel()
			select {
			case <-live.ended:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return p.v.e.cfg.Store.DeleteRun(ctx, id)
	})
}

func (p runs) find(ctx context.Context, id cove.ID) (*cove.Run, error) {
	missing := cove.Errorf(cove.NotFound, "there is no run %.40q", string(id))
	if !id.Valid() {
		return nil, missing
	}
	rec, err := p.v.e.cfg.Store.GetRun(ctx, id)
	if cove.CodeOf(err) == cove.NotFound || err == nil && rec.Tenant != p.v.p.Tenant {
		return nil, missing
	}
	return rec, err
}

func (t *runTable) add(id cove.ID, r *liveRun) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return cove.Errorf(cove.Unavailable, "the server is shutting down").Remedy("try again when it is back")
	}
	if len(t.live) >= maxRuns {
		return cove.Errorf(cove.Exhausted, "%d runs go on already", maxRuns).Reason(cove.ReasonCapacity).With("retry_after", 1)
	}
	if t.live == nil {
		t.live = map[cove.ID]*liveRun{}
	}
	t.live[id] = r
	return nil
}

func (t *runTable) get(id cove.ID) *liveRun {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live[id]
}

func (t *runTable) remove(id cove.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.live[id].ended)
	delete(t.live, id)
}

// close ends all runs under way; their records say so.
func (t *runTable) close() {
	t.mu.Lock()
	t.closed = true
	for _, r := range t.live {
		r.cancel()
	}
	t.mu.Unlock()
	t.done.Wait()
}
