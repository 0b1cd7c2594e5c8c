package engine

import (
	"cmp"
	"context"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// Bounds on how many runs go on at once, in all and of one tenant, so that nobody takes
// all. More are Exhausted.
const (
	maxRuns       = 64
	maxTenantRuns = 32
)

// runs is the part of the platform that answers questions to data.
type runs struct{ v view }

// runTable holds the runs under way.
type runTable struct {
	done sync.WaitGroup

	mu     sync.Mutex
	live   map[cove.ID]*liveRun // guarded by mu
	closed bool                 // guarded by mu
}

// liveRun is a run under way.
type liveRun struct {
	owner  string
	tenant string
	cancel context.CancelCauseFunc
	ended  chan struct{} // closed when rec is set
	rec    *cove.Run     // the record in the end
}

// Submit implements [cove.Runs].
func (p runs) Submit(ctx context.Context, req cove.RunRequest) (*cove.Run, error) {
	e := p.v.e
	a := action{Action: cove.Action{Verb: cove.RunSubmit, Run: &req}, data: e.contentOf(req.SQL + req.Python)}
	return act(ctx, p.v, a, func(ctx context.Context, st *step) (*cove.Run, error) {
		if _, err := e.runnerOf(req.Provider); err != nil {
			return nil, err
		}
		req = req.WithDefaults()
		if err := req.Validate(); err != nil {
			return nil, err
		}
		if err := e.known(req); err != nil {
			return nil, err
		}
		if req.Session != "" && !p.v.p.May(cove.ScopeExec) {
			return nil, cove.Errorf(cove.Denied, "a run in a session needs the scope %s, too", cove.ScopeExec).Remedy("leave session_id out, or use a key with that scope")
		}
		if err := e.mayBegin(ctx, p.v.p.Tenant); err != nil {
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
				return rec, id, p.start(ctx, *rec)
			},
			again: func(id cove.ID) (*cove.Run, error) { return p.find(ctx, id) },
		})
		if err == nil {
			st.outcome.Data = madeSession(out.ID)
		}
		return out, err
	})
}

// start puts the record and answers the question in the background.
func (p runs) start(ctx context.Context, rec cove.Run) error {
	e := p.v.e
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	live := &liveRun{owner: rec.Owner, tenant: rec.Tenant, cancel: cancel, ended: make(chan struct{})}
	if err := e.runs.add(rec.ID, live); err != nil {
		cancel(nil)
		return err
	}
	if err := e.cfg.Store.PutRun(ctx, &rec); err != nil {
		cancel(nil)
		e.runs.remove(rec.ID)
		return err
	}
	e.runs.done.Go(func() {
		defer cancel(nil)
		defer e.runs.remove(rec.ID)
		live.rec = p.finish(work, rec)
	})
	return nil
}

// finish answers the question and keeps the answer. The time that a question may take
// counts from when it is asked inside; all that comes before has bounds of its own.
func (p runs) finish(ctx context.Context, rec cove.Run) *cove.Run {
	e := p.v.e
	runner, err := e.runnerOf(rec.Request.Provider)
	var answer *cove.RunAnswer
	if err == nil {
		ctx, cancel := context.WithTimeoutCause(ctx, rec.Request.Timeout+2*e.cfg.StartTimeout+prepareTime,
			cove.Errorf(cove.Unavailable, "the run could not be prepared in time").Remedy("try again later"))
		defer cancel()
		answer, rec.Decision, err = runner.Run(ctx, runHost{p.v}, cove.RunQuestion{
			ID: rec.ID, Tenant: rec.Tenant, Owner: rec.Owner, Grant: p.v.p.Limits.Data, Request: rec.Request, Timings: &rec.Timings,
		})
		if cause := context.Cause(ctx); err != nil && cause != nil && ctx.Err() != nil {
			err = cause
		}
	}
	if err != nil {
		answer = failedRun(err)
	}
	rec.EndedAt = time.Now()
	answer.Provider = cmp.Or(answer.Provider, rec.Request.Provider, p.v.p.Defaults.Provider, e.cfg.Provider)
	if answer.Wall == 0 {
		answer.Wall = cmp.Or(rec.Timings.Query, rec.EndedAt.Sub(rec.CreatedAt))
	}
	rec.Answer, rec.State = answer, cove.RunFailed
	if answer.Status == "success" {
		rec.State = cove.RunSucceeded
	}
	after := context.WithoutCancel(ctx)
	if err := e.cfg.Store.PutRun(after, &rec); err != nil {
		e.cfg.Logger.ErrorContext(after, "put run", errAttr(err))
	}
	e.tellRun(after, &rec)
	e.keepCode(after, &rec)
	return &rec
}

// prepareTime bounds what comes before a question is asked, beside the making of
// sandboxes: to wait for one, to bring data and to load it.
const prepareTime = 3 * time.Minute

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
		live := p.live(id)
		if live == nil {
			rec, err := p.find(ctx, id)
			if err == nil {
				err = p.v.e.ownRun(ctx, rec)
			}
			return rec, err
		}
		select {
		case <-live.ended:
			if live.rec == nil { // it never began
				return p.find(ctx, id)
			}
			rec := *live.rec
			return &rec, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
}

// ownRun says who is to be asked about a run that goes on at another node. One whose
// node is gone has ended.
func (e *Engine) ownRun(ctx context.Context, r *cove.Run) error {
	if r.State != cove.RunRunning {
		return nil
	}
	if e.leftBehind(ctx, r.Node) {
		return e.cutShort(ctx, r)
	}
	return e.onlyHere(r.Node)
}

// live is the run under way of an id, if the caller may see it.
func (p runs) live(id cove.ID) *liveRun {
	if live := p.v.e.runs.get(id); live != nil && p.sees(live.tenant, live.owner) {
		return live
	}
	return nil
}

// Delete implements [cove.Runs].
func (p runs) Delete(ctx context.Context, id cove.ID) error {
	a := action{Action: cove.Action{Verb: cove.RunDelete}}
	return actDone(ctx, p.v, a, func(ctx context.Context, _ *step) error {
		rec, err := p.find(ctx, id)
		if err == nil {
			err = p.v.e.ownRun(ctx, rec)
		}
		if err != nil {
			return err
		}
		if live := p.live(id); live != nil {
			live.cancel(cove.Errorf(cove.Canceled, "the run was deleted"))
			select {
			case <-live.ended:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return p.v.e.cfg.Store.DeleteRun(ctx, id)
	})
}

// List implements [cove.Runs].
func (p runs) List(ctx context.Context, f cove.RunFilter) iter.Seq2[*cove.Run, error] {
	a := action{Action: cove.Action{Verb: cove.RunList}}
	return actSeq(ctx, p.v, a, func(ctx context.Context, _ *step) (iter.Seq2[*cove.Run, error], error) {
		if p.v.p.Limits.Data.IsZero() {
			f.Tenant = p.v.p.Tenant
			return p.v.e.cfg.Store.Runs(ctx, f), nil
		}
		if f.Owner != "" && f.Owner != p.v.p.Name {
			return each[*cove.Run](nil), nil
		}
		f.Tenant, f.Owner = p.v.p.Tenant, p.v.p.Name
		return p.v.e.cfg.Store.Runs(ctx, f), nil
	})
}

// sees reports whether the caller may see a run. One whose key bounds what it may ask
// of data sees its own: the answers to others may have what it must not ask for.
func (p runs) sees(tenant, owner string) bool {
	return tenant == p.v.p.Tenant && (owner == p.v.p.Name || p.v.p.Limits.Data.IsZero())
}

// known refuses names that this platform does not know.
func (e *Engine) known(req cove.RunRequest) error {
	if _, ok := e.probes.provider(req.Provider); req.Provider != "" && !ok {
		return cove.InvalidField("provider", "%.40q is unknown; use one of %s", req.Provider, strings.Join(e.cfg.providerNames(), ", "))
	}
	if _, ok := e.cfg.Flavors[req.Flavor]; req.Flavor != "" && !ok {
		return cove.InvalidField("flavor", "%.40q is unknown; use one of %s", req.Flavor, e.cfg.flavorNames())
	}
	return nil
}

// runnerOf is who answers questions on a provider.
func (e *Engine) runnerOf(provider string) (cove.Runner, error) {
	if provider == "" {
		provider = e.cfg.Provider
	}
	r, ok := e.cfg.Runners[provider]
	if !ok {
		r = e.cfg.Runners[""]
	}
	if r == nil {
		return nil, cove.Errorf(cove.Unsupported, "this build answers no data runs")
	}
	return r, nil
}

func (p runs) find(ctx context.Context, id cove.ID) (*cove.Run, error) {
	missing := cove.Errorf(cove.NotFound, "there is no run %.40q", string(id))
	if !id.Valid() {
		return nil, missing
	}
	rec, err := p.v.e.cfg.Store.GetRun(ctx, id)
	if cove.CodeOf(err) == cove.NotFound || err == nil && !p.sees(rec.Tenant, rec.Owner) {
		return nil, missing
	}
	return rec, err
}

func (t *runTable) add(id cove.ID, r *liveRun) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return shuttingDown()
	}
	if len(t.live) >= maxRuns {
		return cove.Errorf(cove.Exhausted, "%d runs go on already", maxRuns).Reason(cove.ReasonCapacity).With("retry_after", 1)
	}
	mine := 0
	for _, other := range t.live {
		if other.tenant == r.tenant {
			mine++
		}
	}
	if mine >= maxTenantRuns {
		return cove.Errorf(cove.Exhausted, "%d runs of tenant %s go on already", maxTenantRuns, r.tenant).Reason(cove.ReasonTenantQuota).With("retry_after", 1)
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
		r.cancel(shuttingDown())
	}
	t.mu.Unlock()
	t.done.Wait()
}

// endOf ends the runs of a caller whose key is good no more.
func (t *runTable) endOf(owner string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.live {
		if r.owner == owner {
			r.cancel(cove.Errorf(cove.Denied, "the key was revoked while the run went on"))
		}
	}
}

// count is how many runs of a tenant go on, or of all if it is "".
func (t *runTable) count(tenant string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, r := range t.live {
		if tenant == "" || tenant == r.tenant {
			n++
		}
	}
	return n
}
