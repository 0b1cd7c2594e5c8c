package engine

import (
	"context"

	"github.com/cove-sandbox/cove"
)

// Analyze implements [cove.Runs].
func (p runs) Analyze(ctx context.Context, req cove.RunRequest) (*cove.RunDecision, error) {
	a := action{Action: cove.Action{Verb: cove.RunAnalyze, Run: &req}}
	return act(ctx, p.v, a, func(ctx context.Context, _ *step) (*cove.RunDecision, error) {
		runner, err := p.v.e.runnerOf(req.Provider)
		if err != nil {
			return nil, err
		}
		req = req.WithDefaults()
		if err := req.Validate(); err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, req.Timeout)
		defer cancel()
		return runner.Judge(ctx, runHost{p.v}, cove.RunQuestion{
			Tenant: p.v.p.Tenant, Owner: p.v.p.Name, Grant: p.v.p.Limits.Data, Request: req, Timings: &cove.RunTimings{},
		})
	})
}
