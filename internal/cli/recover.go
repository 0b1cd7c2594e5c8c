//go:build !lean

package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// discardAll is the word with which a user discards everything that was found.
const discardAll = "all"

func (a *app) recoverCommand() *cobra.Command {
	var takeUp bool
	var discard []string
	cmd := &cobra.Command{
		Use:   "recover [flags]",
		Short: "Show what a lost database does not know, and take it up or discard it",
		Long: `A server whose database was lost, emptied or replaced by an older one starts in
recovery: it removes nothing and answers 503 with the reason recovery. This command
lists the sessions, snapshots and volumes that the server found. It changes nothing
without a flag.

With --take-up it makes their records again, and the server goes on with them. With
--discard it removes what has one of the IDs for good, or everything with the word
all. Keys, tenants, runs and chats were in the database alone: see
docs/operations.md.`,
		Example: `  cove recover
  cove recover --take-up
  cove recover --discard all`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			order := daemon.RecoveryOrder{TakeUp: takeUp, Discard: len(discard) > 0}
			if order.TakeUp && order.Discard {
				return cove.InvalidField("--discard", "goes without --take-up; discard some first, and take up the rest then")
			}
			for _, word := range discard {
				if word == discardAll && len(discard) == 1 {
					break
				}
				id := cove.ID(word)
				if !id.Valid() {
					return cove.InvalidField("--discard", "%.40q is not an ID; name IDs that cove recover lists, or the word all alone", word)
				}
				order.Only = append(order.Only, id)
			}
			return a.recover(cmd, order)
		},
	}
	cmd.Flags().BoolVar(&takeUp, "take-up", false, "make the records of all that was found again, and serve it")
	cmd.Flags().StringSliceVar(&discard, "discard", nil, "remove what has one of these `IDs` for good, or all")
	return cmd
}

func (a *app) recover(cmd *cobra.Command, order daemon.RecoveryOrder) error {
	cfg, err := a.load(cmd)
	if err != nil {
		return err
	}
	if address, remote := cfg.Remote(); remote {
		return cove.Errorf(cove.Invalid, "cove recover works on the machine of the server, and the settings name the server %.80q", address).
			Remedy("run it there, or leave --url and COVE_URL out")
	}
	c, err := daemon.Connect(cmd.Context(), cfg, daemon.Caller{Version: version, Notify: a.note})
	if err != nil {
		return err
	}
	_ = c.Close() // it only had to be there
	report, err := daemon.Recover(cmd.Context(), cfg.Home, order)
	if err != nil {
		return err
	}
	if err := a.print(report, func(w io.Writer) error { return showRecovery(w, order, report) }); err != nil {
		return err
	}
	if report.Error != "" {
		return cove.Errorf(cove.Unavailable, "%s", report.Error).Remedy("%s", report.Fix)
	}
	return nil
}

func showRecovery(w io.Writer, order daemon.RecoveryOrder, report daemon.RecoveryReport) error {
	if len(report.Items) == 0 && report.Error == "" {
		_, err := io.WriteString(w, "nothing to recover: the database knows all that is there\n")
		return err
	}
	var rows [][]string
	for _, i := range report.Items {
		rows = append(rows, []string{string(i.ID), string(i.Kind), i.Tenant, i.Name, i.Provider, string(i.State), string(i.Left), string(i.Source)})
	}
	if err := table(w, []string{"ID", "KIND", "TENANT", "NAME", "PROVIDER", "BECOMES", "LEFT", "RECORD FROM"}, rows); err != nil {
		return err
	}
	var said string
	switch {
	case order.TakeUp:
		said = fmt.Sprintf("taken up: %d, still to be decided: %d", len(report.Items), report.Left)
	case order.Discard:
		said = fmt.Sprintf("removed: %d, still to be decided: %d", len(report.Items), report.Left)
	default:
		said = "nothing was changed; cove recover --take-up serves these again, cove recover --discard all removes them"
	}
	_, err := fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(said))
	return err
}
