//go:build !lean

package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Show which providers are ready here and what they enforce",
		Long: `Prints one row for each provider: whether it is ready, what stands between a
sandbox and the host, and how far each limit holds: hard, soft or none. Below is
what to do about those that are not ready, and what is weaker here than it could
be.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reports, err := a.examine(cmd)
			if err != nil {
				return err
			}
			if a.json {
				for _, r := range reports {
					if err := a.printJSON(r); err != nil {
						return err
					}
				}
				return nil
			}
			return showReports(a.sys.Stdout, reports)
		},
	}
}

// examine asks the server that the settings name, or looks at this machine.
func (a *app) examine(cmd *cobra.Command) (reports []cove.ProviderReport, err error) {
	cfg, err := a.load(cmd)
	if err != nil {
		return nil, err
	}
	address, remote := cfg.Remote()
	if !remote {
		return daemon.Doctor(cmd.Context(), cfg)
	}
	p, err := dial(cfg, address)
	if err != nil {
		return nil, err
	}
	defer func() { err = joinTidy(err, p.close()) }()
	return doctorOf(cmd.Context(), p)
}

func doctorOf(ctx context.Context, p cove.Platform) ([]cove.ProviderReport, error) {
	return p.Admin().Doctor(ctx)
}

func showReports(w io.Writer, reports []cove.ProviderReport) error {
	head := []string{"PROVIDER", "READY", "BOUNDARY"}
	for _, l := range cove.LimitNames() {
		head = append(head, strings.ToUpper(string(l)))
	}
	rows := make([][]string, len(reports))
	for i, r := range reports {
		name, ready := r.Name, "yes"
		if r.Default {
			name += " (default)"
		}
		if !r.Capabilities.Ready {
			ready = "no"
		}
		rows[i] = []string{name, ready, string(r.Capabilities.Isolation.Boundary)}
		for _, l := range cove.LimitNames() {
			rows[i] = append(rows[i], string(r.Capabilities.Isolation.Of(l)))
		}
	}
	if err := table(w, head, rows); err != nil {
		return err
	}
	for _, r := range reports {
		for _, note := range r.Capabilities.Notes {
			if _, err := fmt.Fprintf(w, "\n%s: %s\n", escape(r.Name), escape(note)); err != nil {
				return err
			}
		}
		if r.Capabilities.Ready {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s: %s\n  %s\n", escape(r.Name), escape(r.Capabilities.Why), escape(r.Capabilities.Remedy)); err != nil {
			return err
		}
	}
	return nil
}
