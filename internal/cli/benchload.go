//go:build !lean

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/measure"
)

// loadOptions is what the flags of cove bench say of load.
type loadOptions struct {
	on, quick bool
	flavor    string
}

// refuse returns an error where the flags contradict each other.
func (o loadOptions) refuse(cmd *cobra.Command) error {
	switch {
	case !o.on && o.quick:
		return cove.InvalidField("--quick", "goes with --load; add that, or use fewer --rounds")
	case !o.on && o.flavor != "":
		return cove.InvalidField("--flavor", "goes with --load")
	case o.on && cmd.Flags().Changed("rounds"):
		return cove.InvalidField("--rounds", "does not go with --load, which has scenarios; use --quick for little load")
	}
	return nil
}

// ownSize is that of sessions of a server that is started for the load: many fit
// on a small machine.
func ownSize() cove.Resources { return cove.Resources{CPUs: 1, Memory: 32 * cove.MiB, PIDs: 64} }

// benchLoad puts load on the server that the settings name, or on one of its own.
func (a *app) benchLoad(ctx context.Context, cfg config.Config, o loadOptions) error {
	if address, remote := cfg.Remote(); remote {
		return a.putLoad(ctx, cfg, address, cfg.Client.APIKey.Reveal(), o)
	}
	a.progress("starting a server with provider %s", cfg.Provider)
	return daemon.Passing(ctx, cfg, version, ownSize(), func(ctx context.Context, url, key string) error {
		return a.putLoad(ctx, cfg, url, key, o)
	})
}

// loadReport is what cove bench --load --json prints.
type loadReport struct {
	Server    string             `json:"server"`
	OK        bool               `json:"ok"`
	Scenarios []measure.Scenario `json:"scenarios"`
}

func (a *app) putLoad(ctx context.Context, cfg config.Config, address, key string, o loadOptions) (err error) {
	cfg.Client.APIKey = config.Secret(key)
	p, err := dial(cfg, address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if _, err := p.Admin().Stats(ctx); err != nil && !errors.Is(err, cove.Denied) {
		return err // before a hundred callers say the same
	}
	load := measure.FullLoad()
	if o.quick {
		load = measure.QuickLoad()
	}
	load.Spec.Flavor = o.flavor
	found, err := measure.Load(ctx, p, load, func(name string) { a.passing("%s", name) })
	a.passing("")
	if err != nil {
		return err
	}
	r := loadReport{Server: address, OK: !slices.ContainsFunc(found, func(s measure.Scenario) bool { return !s.OK() }), Scenarios: found}
	if err := a.print(r, func(w io.Writer) error { return showLoad(w, r) }); err != nil {
		return err
	}
	if !r.OK {
		return exitError{exitProblem}
	}
	return nil
}

func showLoad(w io.Writer, r loadReport) error {
	var rows [][]string
	passed := 0
	for _, s := range r.Scenarios {
		result := "FAIL"
		if s.OK() {
			result = "pass"
			passed++
		}
		rows = append(rows, []string{
			s.Name, result, fmt.Sprint(s.Done), fmt.Sprint(s.Failed), inMillis(s.Median), inMillis(s.P95), inMillis(s.P99), fmt.Sprintf("%.1fs", s.Took),
		})
	}
	if err := table(w, []string{"SCENARIO", "RESULT", "DONE", "FAILED", "MEDIAN", "P95", "P99", "TOOK"}, rows); err != nil {
		return err
	}
	for _, s := range r.Scenarios {
		if s.Error == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s: %.500s\n", s.Name, escape(s.Error)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n%s: %d of %d scenarios passed\n", escape(r.Server), passed, len(r.Scenarios))
	return err
}
