package httpapi

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// questionLimit leaves room for the longest question, in JSON.
const questionLimit = 4 << 20

// runPageBytes is how much of runs' answers goes into one page: a list of many
// large ones comes in more pages than its limit says.
const runPageBytes = 4 << 20

func runRoutes() []route {
	const one = "/api/runs/{run}"
	return []route{
		{
			method: http.MethodPost, pattern: "/api/runs", needs: []cove.Verb{cove.RunSubmit}, limit: questionLimit, headers: []header{onceHeader},
			summary: "Ask a question of data and wait for the answer; who goes away ends it, unless an Idempotency-Key says that they come back",
			also:    []other{{http.StatusAccepted, reflect.TypeFor[wire.Run](), "it was asked with async and has begun"}},
			deed:    deed{body: reflect.TypeFor[wire.RunCall](), answer: reflect.TypeFor[wire.Run](), status: http.StatusOK, do: (*call).submitRun},
		},
		{
			method: http.MethodGet, pattern: "/api/runs", summary: "List runs by id", deed: get((*call).listRuns),
			query: append([]param{
				{name: "state", kind: word, doc: "running, succeeded or failed"},
				{name: "owner", kind: word, doc: "the name of the key that asked"},
				{name: "thread_id", kind: word, doc: "of the chat that asked"},
				{name: "before", kind: word, doc: "a time; only those that were made earlier"},
				{name: "newest", kind: flag, doc: "begin with the last one, and go back"},
			}, pageParams...),
		},
		{
			method: http.MethodGet, pattern: one, summary: "Get a run and, once it has finished, its answer", deed: get((*call).getRun),
			query: []param{{name: "wait", kind: flag, doc: "answer only when it has finished"}},
		},
		{method: http.MethodGet, pattern: one + "/status", summary: "Get the state of a run; one that is not there is not_found", deed: get((*call).runStatus)},
		{method: http.MethodDelete, pattern: one, summary: "End and forget a run", deed: act((*call).deleteRun)},
	}
}

func (c *call) runID() cove.ID { return cove.ID(c.r.PathValue("run")) }

func runAnswer(r *cove.Run, err error) (wire.Run, error) {
	if err != nil {
		return wire.Run{}, err
	}
	return wire.RunOf(r), nil
}

// submitRun begins a run and waits for it, unless it is to go on by itself.
func (c *call) submitRun() error {
	w, err := decode[wire.RunCall](c)
	if err != nil {
		return invalidRun(err)
	}
	req, err := w.Cove()
	if err != nil {
		return invalidRun(err)
	}
	req.IdempotencyKey = c.idempotencyKey()
	run, err := c.platform.Runs().Submit(c.r.Context(), req)
	if err != nil {
		return invalidRun(err)
	}
	if w.Async {
		return c.send(http.StatusAccepted, wire.RunOf(run))
	}
	done, err := c.platform.Runs().Wait(c.r.Context(), run.ID)
	if err != nil {
		if req.IdempotencyKey == "" && c.r.Context().Err() != nil {
			c.endRun(run.ID)
		}
		return err
	}
	return c.send(http.StatusOK, wire.RunOf(done))
}

// endRun ends a run whose caller has gone and never learns of it.
func (c *call) endRun(id cove.ID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), goneTime)
	defer cancel()
	_ = c.platform.Runs().Delete(ctx, id) // its own timeout ends it otherwise
}

// invalidRun says of what type the error of a run is that was not begun.
func invalidRun(err error) error {
	if e, ok := errors.AsType[*cove.Error](err); ok && e.Code == cove.Invalid {
		return e.With("type", cove.RunValidation)
	}
	return err
}

func (c *call) listRuns() (wire.Page[wire.Run], error) {
	f := cove.RunFilter{
		State: cove.RunState(c.query.text("state")), Owner: c.query.text("owner"), Thread: c.query.text("thread_id"),
		After: cove.ID(c.query.text("cursor")), Newest: c.query.flag("newest"), Limit: c.pageSize() + 1,
	}
	if text := c.query.text("before"); text != "" {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return wire.Page[wire.Run]{}, cove.InvalidField("before", "%.40q is not a time such as 2026-01-02T03:04:05Z", text)
		}
		f.Before = at
	}
	size := 0
	room := func(r *cove.Run) bool {
		size += runSize(r)
		return size <= runPageBytes
	}
	return pageWhile(c.platform.Runs().List(c.r.Context(), f), f.Limit-1, room, wire.RunOf, func(r *cove.Run) string { return string(r.ID) })
}

// runSize is about how long a run is in JSON.
func runSize(r *cove.Run) int {
	n := 1024 + len(r.Request.SQL) + len(r.Request.Python)
	if r.Answer == nil {
		return n
	}
	for _, row := range r.Answer.Rows {
		n += len(row)
	}
	return n + len(r.Answer.Stdout) + len(r.Answer.Stderr)
}

func (c *call) getRun() (wire.Run, error) {
	if c.query.flag("wait") {
		return runAnswer(c.platform.Runs().Wait(c.r.Context(), c.runID()))
	}
	return runAnswer(c.platform.Runs().Get(c.r.Context(), c.runID()))
}

func (c *call) runStatus() (wire.RunStatus, error) {
	r, err := c.platform.Runs().Get(c.r.Context(), c.runID())
	if cove.CodeOf(err) == cove.NotFound {
		return wire.RunStatus{RunID: c.runID(), Status: wire.NoRun}, nil
	}
	if err != nil {
		return wire.RunStatus{}, err
	}
	return wire.RunStatus{RunID: r.ID, Status: r.State}, nil
}

func (c *call) deleteRun() error {
	return c.platform.Runs().Delete(c.r.Context(), c.runID())
}
