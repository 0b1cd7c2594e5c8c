package httpapi

import (
	"net/http"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// questionLimit leaves room for the longest question, in JSON.
const questionLimit = 4 << 20

func runRoutes() []route {
	const one = "/api/runs/{run}"
	return []route{
		{method: http.MethodPost, pattern: "/api/runs", summary: "Ask a question of data", limit: questionLimit, deed: post(http.StatusAccepted, (*call).submitRun), headers: []header{onceHeader}},
		{
			method: http.MethodGet, pattern: one, summary: "Get a run and, once it has finished, its answer", deed: get((*call).getRun),
			query: []param{{name: "wait", kind: flag, doc: "answer only when it has finished"}},
		},
		{method: http.MethodGet, pattern: one + "/status", summary: "Get the state of a run", deed: get((*call).runStatus)},
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

func (c *call) submitRun(w wire.RunRequest) (wire.Run, error) {
	req, err := w.Cove()
	if err != nil {
		return wire.Run{}, err
	}
	req.IdempotencyKey = c.idempotencyKey()
	return runAnswer(c.platform.Runs().Submit(c.r.Context(), req))
}

func (c *call) getRun() (wire.Run, error) {
	if c.query.flag("wait") {
		return runAnswer(c.platform.Runs().Wait(c.r.Context(), c.runID()))
	}
	return runAnswer(c.platform.Runs().Get(c.r.Context(), c.runID()))
}

func (c *call) runStatus() (wire.RunStatus, error) {
	r, err := c.platform.Runs().Get(c.r.Context(), c.runID())
	if err != nil {
		return wire.RunStatus{}, err
	}
	return wire.RunStatus{RunID: r.ID, Status: r.State}, nil
}

func (c *call) deleteRun() error {
	return c.platform.Runs().Delete(c.r.Context(), c.runID())
}
