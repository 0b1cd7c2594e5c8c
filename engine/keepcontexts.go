package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// contextPrefix begins the names of interpreters that outlive this process.
const contextPrefix = "c-"

func isContext(keep string) bool { return strings.HasPrefix(keep, contextPrefix) }

// keepContext is a name for an interpreter that is to outlive this process.
func (c Config) keepContext() string {
	if c.Fleeting {
		return ""
	}
	return contextPrefix + string(cove.NewID())
}

// contextNote is what a provider holds with an interpreter, so that its context can be
// made again from it.
type contextNote struct {
	Name     string      `json:"name"`
	Language string      `json:"language"`
	Dir      string      `json:"dir"`
	Created  time.Time   `json:"created"`
	Run      cove.ID     `json:"run"` // the last one
	Begun    time.Time   `json:"begun"`
	Limits   cove.Limits `json:"limits,omitzero"`
}

func noteOf(info cove.CodeContext, run cove.ID, limits cove.Limits) ([]byte, error) {
	return json.Marshal(contextNote{
		Name: info.Name, Language: info.Language, Dir: info.Dir, Created: info.CreatedAt, Run: run, Begun: time.Now(), Limits: limits,
	})
}

// left is what the run may still use of its limits.
func (n *contextNote) left(now time.Time) cove.Limits {
	l := n.Limits
	if l.Wall > 0 {
		l.Wall = max(n.Begun.Add(l.Wall).Sub(now), 1)
	}
	return l
}

// resumeContext takes up an interpreter that lived on while there was no server, and
// waits in the background for the end of what it ran.
func (e *Engine) resumeContext(ctx context.Context, l *lease, k cove.Kept) error {
	kernels, ok := e.kernels(l.provider()).(cove.KernelResumer)
	if !ok {
		return cove.Errorf(cove.Unsupported, "this build cannot take up interpreters")
	}
	var n contextNote
	var log *codeLog
	spec := cove.KernelSpec{Programs: e.cfg.programs(l.view().Spec, nil)}
	ctx, cancel := context.WithTimeout(ctx, resumeTime)
	defer cancel()
	kernel, err := kernels.Resume(ctx, l.sandbox, k, spec, func(note []byte) (cove.KernelRun, error) {
		if err := json.Unmarshal(note, &n); err != nil || n.Name == "" || n.Language == "" || !n.Run.Valid() {
			return cove.KernelRun{}, cove.Errorf(cove.Internal, "the note of a context does not fit it")
		}
		log = e.newCodeLog(l, n.Run, n.Limits, nil)
		return cove.KernelRun{Limits: n.left(time.Now()), OnOutput: log.hear, Paused: l.paused}, nil
	})
	if err != nil {
		if log != nil {
			log.Close()
			err = cove.Wrap(cmp.Or(cove.CodeOf(err), cove.Internal), errors.Join(err, log.Remove()), "%s", cove.MessageOf(err))
		}
		return err
	}
	s := newSlot(cove.CodeContext{Name: n.Name, Language: n.Language, Dir: n.Dir, CreatedAt: n.Created})
	s.kernel = kernel
	<-s.turn
	s.waiting <- struct{}{}
	run := newCodeRun(n.Run)
	l.mu.Lock()
	l.contexts[n.Name] = s
	l.remember(run)
	l.busy++
	l.mu.Unlock()
	go e.finishCode(l, s, kernel, run, log, n.Limits) //nolint:gosec // code that was under way outlives the start of the server
	return nil
}

// resumeContexts takes up the interpreters that came with a copy of a sandbox, its
// memory included. Where programs are kept to a list, those of a copy may not be, and
// end.
func (e *Engine) resumeContexts(ctx context.Context, l *lease) {
	r, ok := cove.As[cove.Resumer](l.box())
	if !ok {
		return
	}
	listed := e.cfg.programs(l.view().Spec, nil) != nil
	for k, err := range within(ctx, resumeTime, r.Kept) {
		if err != nil {
			e.cfg.Logger.WarnContext(ctx, "the contexts of a copy begin anew", sessionAttr(l.id), errAttr(err))
			return
		}
		if !isContext(k.Keep) {
			continue
		}
		if listed || len(k.Note) == 0 {
			e.forgetPrograms(ctx, l.id, r, k.Keep)
			continue
		}
		if err := e.resumeContext(ctx, l, k); err != nil {
			e.loseProgram(ctx, l, r, k.Keep, err)
		}
	}
}

// finishCode waits for what an interpreter ran when its server went.
func (e *Engine) finishCode(l *lease, s *slot, kernel cove.KeptKernel, run *codeRun, log *codeLog, limits cove.Limits) {
	defer l.leave()
	out, err := kernel.Finish(context.Background())
	run.end(e.codeAnswer(l, s, log, limits, out, midway(err)))
	<-s.waiting
	s.turn <- struct{}{}
}

// letGo ends what this process does with the interpreter. One that cannot outlive it is
// closed.
func (s *slot) letGo(ctx context.Context, l *lease) {
	l.mu.Lock()
	s.closed = true
	k, ok := s.kernel.(cove.KeptKernel)
	l.mu.Unlock()
	if ok {
		k.Leave()
	} else {
		_ = s.close(ctx, l)
	}
}

// maxCodeRuns bounds the results of code that a session can be asked for again.
const maxCodeRuns = 16

// codeRun is a run of code whose result a caller can ask for again.
type codeRun struct {
	id   cove.ID
	done chan struct{} // closed when the result is there
	out  *cove.CodeResult
	err  error
}

func newCodeRun(id cove.ID) *codeRun { return &codeRun{id: id, done: make(chan struct{})} }

func (r *codeRun) end(out *cove.CodeResult, err error) {
	r.out, r.err = out, err
	close(r.done)
}

// wait returns the result, which is the caller's own.
func (r *codeRun) wait(ctx context.Context) (*cove.CodeResult, error) {
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if errors.Is(r.err, cove.ErrNotBegun) {
		return nil, cove.Wrap(cove.Conflict, r.err, "the server stopped before the code was begun: nothing was run").
			Reason(cove.ReasonKeyReused).Remedy("send it again with a fresh idempotency key")
	}
	if r.err != nil {
		return nil, r.err
	}
	out := *r.out
	return &out, nil
}

// remember has a run found again. The oldest that have ended are forgotten. The caller
// holds mu.
func (l *lease) remember(run *codeRun) {
	l.codeRuns = append(l.codeRuns, run)
	for i := 0; i < len(l.codeRuns) && len(l.codeRuns) > maxCodeRuns; {
		select {
		case <-l.codeRuns[i].done:
			l.codeRuns = append(l.codeRuns[:i:i], l.codeRuns[i+1:]...)
		default:
			i++
		}
	}
}

// codeRun returns a run that was asked for before.
func (l *lease) codeRun(id cove.ID) (*codeRun, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.codeRuns {
		if r.id == id {
			return r, nil
		}
	}
	return nil, cove.Errorf(cove.Conflict, "the code was sent before with this idempotency key, and its result is no longer there").
		Reason(cove.ReasonOutcomeUnknown).Remedy("look at what it should have done before you send it again with a fresh key")
}

// codeOnce runs code, or finds the run that the same request began before. With a key
// the code goes on when its caller goes.
func (e *Engine) codeOnce(
	ctx context.Context, p cove.Principal, l *lease, req cove.CodeRequest,
	do func(context.Context, cove.ID, cove.CodeRequest) (*cove.CodeResult, error),
) (*cove.CodeResult, error) {
	if req.IdempotencyKey == "" {
		return do(ctx, cove.NewID(), req)
	}
	began := false
	run, err := once(ctx, e, p, deed[*codeRun]{
		key: req.IdempotencyKey, verb: cove.ContextRun, on: l.id, what: sameCode(req),
		do: func(id cove.ID) (*codeRun, cove.ID, error) {
			run := newCodeRun(id)
			l.mu.Lock()
			l.remember(run)
			l.busy++
			l.mu.Unlock()
			began = true
			go func() {
				defer l.leave()
				run.end(do(context.WithoutCancel(ctx), id, req))
			}()
			return run, id, nil
		},
		again: l.codeRun,
	})
	if err != nil {
		return nil, err
	}
	out, err := run.wait(ctx)
	if began && err != nil && ctx.Err() == nil && !errors.Is(err, cove.ErrLeft) && cove.ReasonOf(err) != cove.ReasonOutcomeUnknown {
		// A request that failed may be tried again.
		if derr := e.cfg.Store.DropClaim(context.WithoutCancel(ctx), p.Tenant, req.IdempotencyKey); derr != nil {
			e.cfg.Logger.ErrorContext(ctx, "drop idempotency key", errAttr(derr))
		}
	}
	return out, err
}

// sameCode is all that makes two requests to run code the same.
func sameCode(r cove.CodeRequest) any {
	return struct {
		Language, Code, Context string
		Env                     map[string]string
		Limits                  cove.Limits
		Imports                 cove.ImportMode
		Trusted                 bool
	}{r.Language, r.Code, r.Context, r.Env, r.Limits, r.Imports, r.Trusted}
}
