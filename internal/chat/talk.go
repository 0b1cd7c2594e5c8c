package chat

import (
	"context"
	"time"

	"github.com/cove-sandbox/cove"
)

// talk is one message on its way to an answer.
type talk struct {
	platform cove.Platform
	req      cove.ChatRequest
	answer   *cove.ChatAnswer
}

// tell hands a step to who looks on.
func (t *talk) tell(ev cove.ChatEvent) {
	if t.req.OnEvent != nil {
		t.req.OnEvent(ev)
	}
}

// endTime bounds how long the end of a run that nobody waits for takes.
const endTime = 10 * time.Second

// run asks data, as the caller, and takes down what came of it. A run that failed
// has a fault, and so has a request that made none, whose error is returned too. A run
// whose caller leaves is ended.
func (t *talk) run(ctx context.Context, req cove.RunRequest) (*cove.Run, *cove.RunError, error) {
	req.Provider, req.Thread = t.req.Provider, t.req.Thread
	t.asked(req, nil)
	runs := t.platform.Runs()
	run, err := runs.Submit(ctx, req)
	if err != nil {
		return nil, t.refused(req.Type, err), err
	}
	id := run.ID
	if run, err = runs.Wait(ctx, id); err != nil {
		if ctx.Err() != nil {
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
			defer cancel()
			_ = runs.Delete(end, id) // it has a timeout of its own
			return nil, nil, context.Cause(ctx)
		}
		return nil, t.refused(req.Type, err), err
	}
	if run.Answer == nil {
		err := cove.Errorf(cove.Internal, "run %s ended without an answer", id)
		return nil, t.refused(req.Type, err), err
	}
	t.answer.Message.Runs = append(t.answer.Message.Runs, id)
	t.asked(req, run)
	fault := run.Answer.Error
	t.tell(cove.ChatEvent{Kind: cove.ChatRun, Run: run, Error: fault})
	if fault != nil && (fault.Type == cove.RunSQLPolicy || fault.Type == cove.RunPythonPolicy) {
		t.blocked(fault)
	}
	return run, fault, nil
}

// asked takes down the query that the answer shows: the last one that worked, or else
// the last one.
func (t *talk) asked(req cove.RunRequest, run *cove.Run) {
	if was := t.answer.Result; was != nil && was.State == cove.RunSucceeded && (run == nil || run.State != cove.RunSucceeded) {
		return
	}
	t.answer.Query, t.answer.Type, t.answer.Result = req.SQL+req.Python, req.Type, run
}

// advised is an error as somebody reads it who can do something about it.
func advised(err error) string {
	if remedy := cove.RemedyOf(err); remedy != "" {
		return cove.MessageOf(err) + "; " + remedy
	}
	return cove.MessageOf(err)
}

// refused is a request that made no run, in the words for runs.
func (t *talk) refused(kind cove.QueryType, err error) *cove.RunError {
	fault := &cove.RunError{Type: cove.RunInternalError, Message: advised(err)}
	switch cove.CodeOf(err) { //nolint:exhaustive // the rest is internal to the runner
	case cove.Invalid:
		fault.Type = cove.RunValidation
	case cove.NotFound:
		fault.Type = cove.RunInvalidInput
	case cove.Denied:
		fault.Type = cove.RunSQLPolicy
		if kind == cove.QueryPython {
			fault.Type = cove.RunPythonPolicy
		}
		t.blocked(fault)
	case cove.Timeout:
		fault.Type = cove.RunTimeout
	case cove.Unavailable, cove.Exhausted, cove.Unsupported:
		fault.Type = cove.RunUnavailable
	}
	return fault
}

// blocked takes down what policy refused.
func (t *talk) blocked(fault *cove.RunError) {
	t.answer.Blocked = append(t.answer.Blocked, *fault)
	t.tell(cove.ChatEvent{Kind: cove.ChatBlocked, Error: fault})
}
