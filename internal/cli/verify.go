//go:build !lean

package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
	battery "github.com/cove-sandbox/cove/provider/providertest/escape"
)

func (a *app) verifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify [flags]",
		Short: "Try to break out of a provider's sandboxes",
		Long: `Runs the abuse battery against a provider and prints one row per attack: what was
tried, what stopped it. Attacks come in by programs, by terminals, by code in an
interpreter and by calls on files. They do no harm where nothing stops them, and
leave nothing behind.

What a provider says it does not enforce is not tried, and the row says so. The
command ends with 1 if anything got through, or if nobody could tell.`,
		Example: `  cove verify
  cove verify --provider local --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.load(cmd, "provider")
			if err != nil {
				return err
			}
			if address, remote := cfg.Remote(); remote {
				return cove.Errorf(cove.Invalid, "cove verify attacks sandboxes of this machine, and the settings name the server %.80q", address).
					Remedy("run it there, or leave --url and COVE_URL out")
			}
			a.progress("attacking provider %s; it takes up to a minute", cfg.Provider)
			var found []battery.Finding
			err = daemon.Verify(cmd.Context(), cfg, func(f battery.Finding) error {
				found = append(found, f)
				if a.json {
					return a.printJSON(f)
				}
				a.passing("%d attempts so far, the last one: %s by %s", len(found), f.Attack, f.Via)
				return nil
			})
			a.passing("")
			if err != nil {
				return platformError{err}
			}
			return a.concludeVerify(cfg.Provider, found)
		},
	}
	addSettings(cmd.Flags(), []string{"provider"})
	return cmd
}

// passing shows a line on a terminal that the next one replaces.
func (a *app) passing(format string, args ...any) {
	if _, ok := terminal(a.sys.Stderr); ok && !a.json {
		const backAndClear = "\r\x1b[K"
		_, _ = io.WriteString(a.sys.Stderr, backAndClear+escape(fmt.Sprintf(format, args...))) // it is beside the answer
	}
}

// concludeVerify shows the findings, and fails when anything got through.
func (a *app) concludeVerify(provider string, found []battery.Finding) error {
	if !a.json {
		if err := showFindings(a.sys.Stdout, provider, found); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(found, battery.Finding.GotThrough) {
		return exitError{exitProblem}
	}
	return nil
}

func showFindings(w io.Writer, provider string, found []battery.Finding) error {
	var rows [][]string
	counts := map[string]int{}
	for _, f := range found {
		result, why := resultOf(f)
		counts[result]++
		// An attack that went the same by every way in has one row.
		if n := len(rows) - 1; n >= 0 && rows[n][0] == f.Attack && rows[n][2] == result && (result == held || rows[n][4] == why) {
			rows[n][1] += ", " + string(f.Via)
			continue
		}
		rows = append(rows, []string{f.Attack, string(f.Via), result, f.Try, why})
	}
	if err := table(w, []string{"ATTACK", "BY", "RESULT", "TRIED", "STOPPED BY"}, rows); err != nil {
		return err
	}
	parts := []string{fmt.Sprintf("%d %s", counts[held], held)}
	for _, result := range []string{gotThrough, notTried} {
		if counts[result] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[result], result))
		}
	}
	_, err := fmt.Fprintf(w, "\nprovider %s, %d attempts: %s\n", escape(provider), len(found), strings.Join(parts, ", "))
	return err
}

// Results as they are shown.
const (
	held       = "held"
	gotThrough = "got through"
	notTried   = "not tried"
)

// resultOf says how an attempt went, and why.
func resultOf(f battery.Finding) (result, why string) {
	switch {
	case f.Skipped != "":
		return notTried, f.Skipped
	case f.Held:
		return held, f.By
	}
	return gotThrough, "nothing: " + f.Detail
}
