//go:build !lean

package daemon

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/policy"
	"github.com/cove-sandbox/cove/internal/wire"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

// explainer returns what /api/analyze asks.
func explainer(cfg config.Config) (func(profile string, req cove.ExecRequest) (wire.Analysis, error), error) {
	p, err := Policy(cfg)
	if err != nil {
		return nil, err
	}
	return func(profile string, req cove.ExecRequest) (wire.Analysis, error) {
		if profile == "" {
			profile = cfg.CommandPolicy
		}
		if profile == "" {
			return wire.Analysis{}, cove.InvalidField("policy", "is not given, and the settings name none, so that every command may run; name one, such as agent-bash")
		}
		ex, err := p.Explain(profile, req)
		if err != nil {
			return wire.Analysis{}, err
		}
		return analysisOf(ex), nil
	}, nil
}

func analysisOf(ex policy.Explanation) wire.Analysis {
	a := wire.Analysis{Policy: ex.Profile, Effect: ex.Decision.Effect, Refusal: ex.Decision.Refusal, Programs: []wire.AnalysisProgram{}}
	for _, p := range ex.Programs {
		a.Programs = append(a.Programs, wire.AnalysisProgram{Name: p.Name, Kind: string(p.Kind), Effect: p.Effect, Line: p.Line, Column: p.Column})
	}
	return a
}

// verifier returns what /api/verify does: one battery at a time.
func verifier(cfg config.Config) func(ctx context.Context, provider string, found func(wire.Finding) error) error {
	var one sync.Mutex
	return func(ctx context.Context, provider string, found func(wire.Finding) error) error {
		cfg := cfg
		if provider != "" {
			cfg.Provider = provider
		}
		if names := ProviderNames(); !slices.Contains(names, cfg.Provider) {
			return cove.InvalidField("provider", "%.80q is not part of this build; use %s", cfg.Provider, strings.Join(names, ", "))
		}
		if !one.TryLock() {
			return cove.Errorf(cove.Conflict, "the attacks are under way for another caller").Remedy("wait a minute and ask again")
		}
		defer one.Unlock()
		return Verify(ctx, cfg, func(f escape.Finding) error {
			return found(wire.Finding{Attack: f.Attack, Try: f.Try, Via: string(f.Via), Held: f.Held, By: f.By, Detail: f.Detail, Skipped: f.Skipped})
		})
	}
}
