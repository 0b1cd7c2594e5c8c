package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/measure"
)

// ladderRounds is how often each contender runs: what others do takes up to half
// a second.
const ladderRounds = 30

// rung is a provider on an engine, and what the engine's own commands do for the
// same: run `true` where a sandbox is, and in a new one.
type rung struct {
	rounds   int
	exec     measure.Contender
	execMust float64
	run      measure.Contender
	runMust  float64
}

// opener opens a provider in a directory of its own.
type opener func(dir string) (cove.Provider, error)

// measure races our provider with its engine, in the same rounds, and with the
// local provider for comparison.
func (r rung) measure(ctx context.Context, ours, local opener) (_ []row, _ []measure.Timing, err error) {
	dir, err := os.MkdirTemp("", "cove-bench-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	own, err := stand(ctx, ours, filepath.Join(dir, "ours"))
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, own.close(ctx)) }()
	usual, err := stand(ctx, local, filepath.Join(dir, "local"))
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, usual.close(ctx)) }()

	all := slices.Concat([]measure.Contender{measure.Host()}, own.contenders(), []measure.Contender{r.exec, r.run}, usual.contenders())
	times, err := measure.Race(ctx, r.rounds, all...)
	if err != nil {
		return nil, nil, told(err)
	}
	var timings []measure.Timing
	for i, c := range all {
		timings = append(timings, measure.TimingOf(c.Name, c, times[i], times[0]))
	}
	live, pooled, exec, run := times[1], times[2], times[4], times[5]
	return []row{
		{
			name: "exec `true` in a live sandbox of " + own.name + " ÷ " + r.exec.Name, measured: taken(live), baseline: taken(exec),
			value: live.Over(exec), must: r.execMust,
		},
		{
			name: "create from the pool of " + own.name + " + exec `true` ÷ " + r.run.Name, measured: taken(pooled), baseline: taken(run),
			value: pooled.Over(run), must: r.runMust,
		},
	}, timings, nil
}

// standing is a provider that is measured.
type standing struct {
	name   string
	p      cove.Provider
	stage  *measure.Stage
	pooled measure.Contender
}

func stand(ctx context.Context, open opener, dir string) (_ *standing, err error) {
	p, err := open(dir)
	if err != nil {
		return nil, err
	}
	s := &standing{name: p.Name(), p: p}
	if s.stage, err = measure.Open(ctx, p); err != nil {
		return nil, errors.Join(told(err), p.Close())
	}
	pooled, ok := s.stage.Pooled()
	if !ok {
		return nil, errors.Join(fmt.Errorf("provider %s prepares no sandboxes", s.name), s.close(ctx))
	}
	s.pooled = pooled
	return s, nil
}

func (s *standing) close(ctx context.Context) error {
	return errors.Join(s.stage.Close(ctx), s.p.Close())
}

// contenders are the three ways to run something: live, pooled, cold.
func (s *standing) contenders() []measure.Contender {
	all := []measure.Contender{s.stage.Live(), s.pooled, s.stage.Cold()}
	for i := range all {
		all[i].Name = s.name + ": " + all[i].Name
	}
	return all
}

// renderLadder returns the timings as a Markdown table.
func renderLadder(about string, timings []measure.Timing) string {
	var b strings.Builder
	b.WriteString("| " + about + " | median | p95 | ÷ host |\n|---|---|---|---|\n")
	for _, t := range timings {
		fmt.Fprintf(&b, "| %s | %.2f ms | %.2f ms | %.2f |\n", t.Name, t.Median, t.P95, t.OverHost)
	}
	return b.String()
}
