//go:build !lean

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Show which providers are ready here and what they enforce",
		Long: `Prints one row for each provider, the weakest boundary first: whether it is ready,
what stands between a sandbox and the host, and how far each limit holds: hard,
soft or none. Below is who makes the sandboxes that name no provider, which
templates each has, what to do about providers and templates that are not ready,
and what is weaker here than it could be.`,
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
			if err := showReports(a.sys.Stdout, reports); err != nil {
				return err
			}
			return a.showDisk(cmd)
		},
	}
}

// showDisk says where the disk of the home on this machine is full.
func (a *app) showDisk(cmd *cobra.Command) error {
	cfg, err := a.load(cmd)
	if err != nil {
		return err
	}
	if _, remote := cfg.Remote(); remote {
		return nil
	}
	if full := daemon.FullHome(cfg); full != nil {
		_, err = fmt.Fprintf(a.sys.Stdout, "\n%s\n  %s\n", escape(cove.MessageOf(full)), escape(cove.RemedyOf(full)))
	}
	return err
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
	if err := showLadder(w, reports); err != nil {
		return err
	}
	if text := whoServes(reports); text != "" {
		if _, err := fmt.Fprintf(w, "\n%s\n", escape(text)); err != nil {
			return err
		}
	}
	for _, r := range reports {
		if names := r.Capabilities.Templates; r.Capabilities.Ready && len(names) > 0 {
			if _, err := fmt.Fprintf(w, "\n%s has the templates %s\n", escape(r.Name), escape(strings.Join(names, ", "))); err != nil {
				return err
			}
		}
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

func showLadder(w io.Writer, reports []cove.ProviderReport) error {
	head := []string{"PROVIDER", "READY", "BOUNDARY"}
	for _, l := range cove.LimitNames() {
		head = append(head, strings.ToUpper(string(l)))
	}
	head = append(head, "POLICY")
	rows := make([][]string, len(reports))
	for i, r := range reports {
		name, ready := r.Name, "yes"
		switch {
		case r.Default:
			name += " (default)"
		case r.Fallback > 0:
			name += fmt.Sprintf(" (fallback %d)", r.Fallback)
		}
		if !r.Capabilities.Ready {
			ready = "no"
		}
		rows[i] = []string{name, ready, string(r.Capabilities.Isolation.Boundary)}
		for _, l := range cove.LimitNames() {
			rows[i] = append(rows[i], string(r.Capabilities.Isolation.Of(l)))
		}
		rows[i] = append(rows[i], string(cmp.Or(r.Capabilities.Isolation.Policy, cove.Absent)))
	}
	return table(w, head, rows)
}

// whoServes says who makes the sandboxes that name no provider, or "" where none
// is chosen.
func whoServes(reports []cove.ProviderReport) string {
	order := slices.DeleteFunc(slices.Clone(reports), func(r cove.ProviderReport) bool { return !r.Default && r.Fallback == 0 })
	slices.SortFunc(order, func(a, b cove.ProviderReport) int { return cmp.Compare(a.Fallback, b.Fallback) })
	if len(order) == 0 || !order[0].Default {
		return ""
	}
	var later []string
	for _, r := range order[1:] {
		later = append(later, r.Name)
	}
	by := slices.IndexFunc(order, func(r cove.ProviderReport) bool { return r.Capabilities.Ready })
	switch {
	case by == 0 && len(later) == 0:
		return fmt.Sprintf("sandboxes are made by %s, and by nobody else", order[0].Name)
	case by == 0:
		return fmt.Sprintf("sandboxes are made by %s; where it is not ready, by %s", order[0].Name, strings.Join(later, ", then "))
	case by > 0:
		return fmt.Sprintf("sandboxes are made by %s now, because %s is not ready", order[by].Name, order[0].Name)
	case len(later) == 0:
		return fmt.Sprintf("no sandboxes can be made: %s is not ready, and SANDBOX_FALLBACK names nobody else", order[0].Name)
	}
	return fmt.Sprintf("no sandboxes can be made: neither %s nor %s is ready", order[0].Name, strings.Join(later, ", "))
}
