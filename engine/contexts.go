package engine

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/spool"
)

// Bounds on the interpreters of one session.
const (
	maxContexts     = 32
	maxContextQueue = 16
)

// contexts is the part of the platform that runs code that remembers.
type contexts struct {
	v  view
	id cove.ID
}

// slot is one interpreter of a session. turn holds one token, taken by who
// runs; waiting counts those who want it.
type slot struct {
	info    cove.CodeContext
	turn    chan struct{}
	waiting chan struct{} // one element for each that runs or waits
	kernel  cove.Kernel   // owned by who has the turn; read by Interrupt through lease.mu
	closed  bool          // no interpreter may be put in any more; guarded by lease.mu
}

func newSlot(info cove.CodeContext) *slot {
	s := &slot{info: info, turn: make(chan struct{}, 1), waiting: make(chan struct{}, maxContextQueue+1)}
	s.turn <- struct{}{}
	return s
}

// Run implements [cove.Contexts].
func (c contexts) Run(ctx context.Context, req cove.CodeRequest) (*cove.CodeResult, error) {
	a := on(cove.ContextRun, c.id)
	req.Language = c.language(req)
	a.Code = &req
	a.data = c.v.e.contentOf(req.Code)
	report, unseen := c.look(ctx, &a)
	out, err := actOrBlock(ctx, c.v, a, func(ctx context.Context, st *step) (*cove.CodeResult, error) {
		if err := req.Validate(); err != nil {
			return nil, err
		}
		if unseen != nil {
			return nil, unseen
		}
		if err := c.v.e.mayBegin(ctx, c.v.p.Tenant); err != nil {
			return nil, err
		}
		sandbox, err := st.lease.enter()
		if err != nil {
			return nil, err
		}
		defer st.lease.leave()
		limits := req.Limits.Tighten(st.limits)
		if limits.Wall == 0 {
			limits.Wall = c.v.e.cfg.ExecTimeout
		}
		out, err := c.v.e.codeOnce(ctx, c.v.p, st.lease, req, func(ctx context.Context, id cove.ID, req cove.CodeRequest) (*cove.CodeResult, error) {
			s, err := c.slot(st.lease, req)
			if err != nil {
				return nil, err
			}
			if s.info.Language != req.Language { // policy judged another language
				return nil, cove.Errorf(cove.Conflict, "context %q was opened meanwhile", s.info.Name).Remedy("send the code again")
			}
			if report != nil && report.Syntax != nil {
				return st.misspelt(s, report), nil
			}
			return c.v.e.runCode(ctx, st.lease, s, sandbox, req, limits, id)
		})
		if err == nil {
			out.Security = report
			st.ended(out.Result)
			out.Restarted = st.lease.tellRestart()
		}
		return out, err
	}, func(x *cove.Execution) *cove.CodeResult { return &cove.CodeResult{Execution: *x, Security: report} })
	if err == nil {
		c.answered(ctx, req, out)
	}
	return out, err
}

// language is what a request is written in: policy must know it also where the
// request names only a context.
func (c contexts) language(req cove.CodeRequest) string {
	l, err := c.v.e.find(c.v.p.Tenant, c.id)
	if req.Language != "" || err != nil {
		return cove.Language(req.Language)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.contexts[req.Context]; s != nil {
		return s.info.Language
	}
	return ""
}

// runCode runs code in a slot and puts what it wrote into the answer. id is new.
func (e *Engine) runCode(
	ctx context.Context, l *lease, s *slot, sandbox cove.Sandbox, req cove.CodeRequest, limits cove.Limits, id cove.ID,
) (*cove.CodeResult, error) {
	listener := newPace(req.OnOutput, req.OnResult)
	log := e.newCodeLog(l, id, limits, listener.ear())
	out, err := s.run(ctx, l, func(spec cove.KernelSpec) (cove.Kernel, error) {
		return e.interpreter(ctx, l, sandbox, spec)
	}, func(k cove.Kernel) (*cove.CodeResult, error) {
		listener.begin(limits.Wall)
		note, err := noteOf(s.info, id, limits)
		if err != nil {
			return nil, err
		}
		out, err := k.Run(ctx, cove.KernelRun{Code: req.Code, Env: req.Env, Limits: limits, OnResult: listener.eye(), OnOutput: log.hear, Note: note, Paused: l.paused})
		return out, midway(err)
	})
	listener.close()
	return e.codeAnswer(l, s, log, limits, out, err)
}

// codeLog is what code writes.
type codeLog struct {
	*spool.Log

	id      cove.OutputID
	flooded atomic.Bool
}

func (e *Engine) newCodeLog(l *lease, id cove.ID, limits cove.Limits, onChunk func(cove.Chunk)) *codeLog {
	log := &codeLog{id: cove.OutputID(id)}
	log.Log = e.logOf(l, log.id, limits, onChunk, func() { log.flooded.Store(true) })
	return log
}

func (log *codeLog) hear(c cove.Chunk) { _, _ = log.Writer(c.Stream).Write(c.Data) } // a log never fails

// codeAnswer puts what code wrote into the answer.
func (e *Engine) codeAnswer(l *lease, s *slot, log *codeLog, limits cove.Limits, out *cove.CodeResult, err error) (*cove.CodeResult, error) {
	log.Close()
	if err != nil {
		return nil, errors.Join(err, log.Remove())
	}
	if log.flooded.Load() {
		out.Outcome = cove.OutputLimit
	}
	out.Context, out.Provider, out.Session, out.Template = s.info.Name, l.provider(), l.id, l.template()
	out.Timeout, out.Budget, out.Cost = limits.Wall, e.cfg.OutputBudget, l.cost(out.Wall)
	e.fit(out)
	e.tenants.count(l.tenant, tally{execs: 1})
	out.CPU = l.given(out.Result)
	e.spend(l, out.CPU)
	e.settle(l, log.id, log.Log, &out.Execution)
	return out, nil
}

// slot finds the context of a request, or makes the language's default one.
func (c contexts) slot(l *lease, req cove.CodeRequest) (*slot, error) {
	name := req.Context
	if name == "" {
		name = req.Language
	}
	l.mu.Lock()
	s := l.contexts[name]
	l.mu.Unlock()
	switch {
	case s == nil && req.Context != "":
		return nil, cove.Errorf(cove.NotFound, "there is no context %.40q in this session", name).Remedy("open it first")
	case s == nil:
		return c.add(l, cove.ContextSpec{Name: name, Language: req.Language})
	case req.Language != "" && req.Language != s.info.Language:
		return nil, cove.InvalidField("language", "context %q speaks %s", name, s.info.Language)
	}
	return s, nil
}

// add puts a context into the session; its interpreter starts when it is used.
func (c contexts) add(l *lease, spec cove.ContextSpec) (*slot, error) {
	spec.Language = cove.Language(spec.Language)
	if err := c.v.e.speaks(l.provider(), spec.Language); err != nil {
		return nil, err
	}
	if spec.Name == "" {
		spec.Name = string(cove.NewID())
	}
	if len(spec.Name) > 64 || strings.ContainsAny(spec.Name, "\x00/\n") {
		return nil, cove.InvalidField("context_id", "%.80q cannot be a name; use up to 64 letters, digits and -", spec.Name)
	}
	if spec.Dir == "" {
		spec.Dir = cove.WorkspacePath
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.contexts[spec.Name]; s != nil {
		if s.info.Language != spec.Language {
			return nil, cove.Errorf(cove.Conflict, "context %q exists and speaks %s", spec.Name, s.info.Language)
		}
		return s, nil
	}
	if len(l.contexts) >= maxContexts {
		return nil, cove.Errorf(cove.Exhausted, "the session has %d contexts, as many as it may", maxContexts).Remedy("close one first")
	}
	s := newSlot(cove.CodeContext{Name: spec.Name, Language: spec.Language, Dir: spec.Dir, CreatedAt: time.Now()})
	l.contexts[spec.Name] = s
	return s, nil
}

// kernels returns the interpreters for the sandboxes of a provider, or nil.
func (e *Engine) kernels(provider string) cove.Kernels {
	return kernelsOf(e.cfg.Kernels, provider)
}

func kernelsOf(all map[string]cove.Kernels, provider string) cove.Kernels {
	if k, ok := all[provider]; ok {
		return k
	}
	return all[""]
}

// speaks reports a language for which there is no interpreter.
func (e *Engine) speaks(provider, language string) error {
	kernels := e.kernels(provider)
	if kernels == nil {
		return cove.Errorf(cove.Unsupported, "this build has no interpreters that remember").Remedy("run the code as a program instead")
	}
	if !slices.Contains(kernels.Languages(), language) {
		return cove.InvalidField("language", "%.40q is unknown; use one of %s", language, strings.Join(kernels.Languages(), ", "))
	}
	return nil
}

// run waits for the context's turn and runs code in its interpreter, starting
// one where there is none alive.
func (s *slot) run(ctx context.Context, l *lease, open func(cove.KernelSpec) (cove.Kernel, error), do func(cove.Kernel) (*cove.CodeResult, error)) (*cove.CodeResult, error) {
	select {
	case s.waiting <- struct{}{}:
		defer func() { <-s.waiting }()
	default:
		return nil, cove.Errorf(cove.Exhausted, "%d calls wait for context %q already", maxContextQueue, s.info.Name).
			Reason(cove.ReasonQueueFull).With("retry_after", 1)
	}
	select {
	case <-s.turn:
		defer func() { s.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	k, fresh, err := s.interpreter(ctx, l, open)
	if err != nil {
		return nil, err
	}
	res, err := do(k)
	if err == nil {
		res.Fresh = fresh
	}
	return res, err
}

// interpreter returns the one of the context, or a fresh one where none is alive.
// The caller has the turn.
func (s *slot) interpreter(ctx context.Context, l *lease, open func(cove.KernelSpec) (cove.Kernel, error)) (k cove.Kernel, fresh bool, err error) {
	if k := s.alive(l); k != nil {
		return k, false, nil
	}
	over := cove.Errorf(cove.NotFound, "context %.64q was closed before the code ran", s.info.Name).Remedy("open it again")
	if !s.set(l, nil) {
		return nil, false, over
	}
	k, err = open(cove.KernelSpec{Language: s.info.Language, Dir: s.info.Dir})
	if err != nil {
		return nil, false, err
	}
	if !s.set(l, k) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
		defer cancel()
		_ = k.Close(ctx) // an interpreter that will not close goes with its sandbox
		return nil, false, over
	}
	return k, true, nil
}

func (s *slot) alive(l *lease) cove.Kernel {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.kernel != nil && s.kernel.Alive() {
		return s.kernel
	}
	return nil
}

// set puts an interpreter in, or none. It reports false where the context is closed.
func (s *slot) set(l *lease, k cove.Kernel) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.kernel = k
	if s.closed {
		s.kernel = nil
	}
	return !s.closed
}

// close ends the interpreter. No other one follows it.
func (s *slot) close(ctx context.Context, l *lease) error {
	l.mu.Lock()
	s.closed = true
	k := s.kernel
	l.mu.Unlock()
	if k == nil {
		return nil
	}
	return k.Close(ctx)
}

// Open implements [cove.Contexts].
func (c contexts) Open(ctx context.Context, spec cove.ContextSpec) (*cove.CodeContext, error) {
	return act(ctx, c.v, on(cove.ContextOpen, c.id), func(ctx context.Context, st *step) (*cove.CodeContext, error) {
		if _, err := st.lease.enter(); err != nil {
			return nil, err
		}
		defer st.lease.leave()
		key := spec.IdempotencyKey
		spec.IdempotencyKey = ""
		return once(ctx, c.v.e, c.v.p, deed[*cove.CodeContext]{
			key: key, verb: cove.ContextOpen, on: c.id, what: spec,
			do: func(id cove.ID) (*cove.CodeContext, cove.ID, error) {
				if spec.Name == "" {
					spec.Name = string(id)
				}
				s, err := c.add(st.lease, spec)
				if err != nil {
					return nil, "", err
				}
				info := s.info
				return &info, cove.ID(info.Name), nil
			},
			again: func(name cove.ID) (*cove.CodeContext, error) { return c.opened(st.lease, string(name)) },
		})
	})
}

// opened describes a context of a lease.
func (c contexts) opened(l *lease, name string) (*cove.CodeContext, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.contexts[name]; s != nil {
		info := s.info
		return &info, nil
	}
	return nil, cove.Errorf(cove.NotFound, "there is no context %.40q in this session any more", name)
}

// List implements [cove.Contexts].
func (c contexts) List(ctx context.Context) iter.Seq2[cove.CodeContext, error] {
	return actSeq(ctx, c.v, on(cove.ContextList, c.id), func(_ context.Context, st *step) (iter.Seq2[cove.CodeContext, error], error) {
		st.lease.mu.Lock()
		defer st.lease.mu.Unlock()
		var list []cove.CodeContext
		for _, s := range st.lease.contexts {
			info := s.info
			info.Busy = len(s.waiting) > 0
			list = append(list, info)
		}
		slices.SortFunc(list, func(a, b cove.CodeContext) int { return strings.Compare(a.Name, b.Name) })
		return each(list), nil
	})
}

// Interrupt implements [cove.Contexts].
func (c contexts) Interrupt(ctx context.Context, name string) error {
	return c.with(ctx, cove.ContextInterrupt, name, func(ctx context.Context, l *lease, s *slot) error {
		if k := s.alive(l); k != nil {
			return k.Interrupt(ctx)
		}
		return nil
	})
}

// Restart implements [cove.Contexts]. What runs in the context is ended.
func (c contexts) Restart(ctx context.Context, name string) error {
	return c.with(ctx, cove.ContextRestart, name, func(ctx context.Context, l *lease, s *slot) error {
		k := s.alive(l)
		s.set(l, nil)
		if k == nil {
			return nil
		}
		return k.Close(ctx)
	})
}

// Close implements [cove.Contexts].
func (c contexts) Close(ctx context.Context, name string) error {
	return c.with(ctx, cove.ContextClose, name, func(ctx context.Context, l *lease, s *slot) error {
		l.mu.Lock()
		if l.contexts[name] == s { // it may be another one's by now
			delete(l.contexts, name)
		}
		l.mu.Unlock()
		return s.close(ctx, l)
	})
}

func (c contexts) with(ctx context.Context, verb cove.Verb, name string, do func(context.Context, *lease, *slot) error) error {
	return actDone(ctx, c.v, on(verb, c.id), func(ctx context.Context, st *step) error {
		st.lease.mu.Lock()
		s := st.lease.contexts[name]
		st.lease.mu.Unlock()
		if s == nil {
			return cove.Errorf(cove.NotFound, "there is no context %.40q in this session", name)
		}
		return do(ctx, st.lease, s)
	})
}
