//go:build !lean

package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/measure"
)

// Bounds on how long cove bench can take: a round is some hundredth of a second.
const (
	defaultRounds = 200
	leastRounds   = 10
	mostRounds    = 100_000
)

func (a *app) benchCommand() *cobra.Command {
	var rounds int
	var load loadOptions
	cmd := &cobra.Command{
		Use:   "bench [flags]",
		Short: "Measure what sandboxes cost on this machine",
		Long: `Runs the program true on the host and in sandboxes, in turn, and prints what each
way takes: in a session that is there, in a prepared one, and in one that is
made and destroyed around it. Then it runs many at once, and counts the memory
that idle sessions keep. bubblewrap runs beside them where it is installed.

Compare the ratios, not the times: each is taken in the same round as what it is
compared with. A busy machine is slower for all of them.

With --load it puts load on a server instead: many sessions created at once,
commands in many sessions, files, and sessions that come and go. The server is
the one that --url and COVE_API_KEY name, or one that is started for it. Each
scenario passes or fails; the command ends with 1 if one failed.`,
		Example: `  cove bench
  cove bench --rounds 1000 --json
  cove bench --load
  cove bench --load --url https://sandboxes.example.org --flavor small`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if rounds < leastRounds || rounds > mostRounds {
				return cove.InvalidField("--rounds", "%d is out of range; use %d to %d", rounds, leastRounds, mostRounds)
			}
			if err := load.refuse(cmd); err != nil {
				return err
			}
			cfg, err := a.load(cmd, "provider")
			if err != nil {
				return err
			}
			if load.on {
				return a.benchLoad(cmd.Context(), cfg, load)
			}
			if address, remote := cfg.Remote(); remote {
				return cove.Errorf(cove.Invalid, "cove bench measures this machine, and the settings name the server %.80q", address).
					Remedy("run it there, leave --url and COVE_URL out, or put load on that server with --load")
			}
			a.progress("measuring provider %s in %d rounds", cfg.Provider, rounds)
			r, err := daemon.Bench(cmd.Context(), cfg, measure.Config{Rounds: rounds})
			if err != nil {
				return err
			}
			return a.print(r, func(w io.Writer) error { return showBench(w, r) })
		},
	}
	cmd.Flags().IntVar(&rounds, "rounds", defaultRounds, "the `number` of times that each way is measured")
	cmd.Flags().BoolVar(&load.on, "load", false, "put load on a server, and say what passed")
	cmd.Flags().BoolVar(&load.quick, "quick", false, "only a little load, in some seconds")
	cmd.Flags().StringVar(&load.flavor, "flavor", "", "the `flavor` of the sessions that are the load (default: the server's)")
	addSettings(cmd.Flags(), []string{"provider"})
	return cmd
}

func showBench(w io.Writer, r measure.Report) error {
	who := "an ordinary user"
	if r.Machine.AsRoot {
		who = "root"
	}
	if _, err := fmt.Fprintf(w, "provider %s, %d cores, %s, as %s, %d rounds\n\n", escape(r.Provider), r.Machine.Cores, escape(r.Machine.OS), who, r.Rounds); err != nil {
		return err
	}
	var rows [][]string
	for _, t := range r.Timings {
		rows = append(rows, []string{t.Name, inMillis(t.Median), inMillis(t.P95), times(t.OverHost), times(t.OverBwrap)})
	}
	if err := table(w, []string{"TIME", "MEDIAN", "P95", "/ HOST", "/ BWRAP"}, rows); err != nil {
		return err
	}
	rows = nil
	for _, c := range r.Crowds {
		where := "in one session"
		if c.Sessions > 1 {
			where = fmt.Sprintf("in %d sessions", c.Sessions)
		}
		rows = append(rows, []string{fmt.Sprintf("%d at once %s", c.Workers, where), perSecond(c.Inside), perSecond(c.Host), times(c.OverHost)})
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	if err := table(w, []string{"THROUGHPUT", "INSIDE", "HOST", "/ HOST"}, rows); err != nil {
		return err
	}
	return showMemory(w, r.Memory)
}

func showMemory(w io.Writer, m *measure.Memory) error {
	if m == nil {
		_, err := io.WriteString(w, "\nmemory of an idle session: cannot be read here; measure as root\n")
		return err
	}
	_, err := fmt.Fprintf(w, "\nmemory of an idle session: %s, %.3g processes (of %d sessions at once)\nmemory of the provider: %s, %d processes\n",
		inMegabytes(m.Private), m.Processes, m.Sessions, inMegabytes(m.ProviderPrivate), m.ProviderProcesses)
	return err
}

func inMillis(ms float64) string { return fmt.Sprintf("%.2fms", ms) }

func perSecond(n float64) string { return fmt.Sprintf("%.0f/s", n) }

func inMegabytes(b cove.Bytes) string { return fmt.Sprintf("%.2f MB", float64(b)/float64(cove.MiB)) }

// times is a ratio; one that was not measured is an empty cell.
func times(ratio float64) string {
	if ratio == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", ratio)
}
