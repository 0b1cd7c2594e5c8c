//go:build !lean

package cli

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func (a *app) snapshotCommand() *cobra.Command {
	var req cove.SnapshotRequest
	cmd := &cobra.Command{
		Use:   "snapshot [flags] ID",
		Short: "Save the files of a sandbox and print the snapshot's id",
		Long: `Saves the files of a sandbox. cove sandbox create --snapshot starts from
them.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSession(cmd, args[0], func(ctx context.Context, p link, id cove.ID) error {
				s, err := p.Snapshots().Snapshot(ctx, id, req)
				if err != nil {
					return err
				}
				return a.print(wire.SnapshotOf(s), func(w io.Writer) error { return printID(w, s.ID) })
			})
		},
	}
	cmd.Flags().StringVar(&req.Name, "name", "", "a `word` to know it by")
	cmd.Flags().StringVar(&req.IdempotencyKey, "idempotency-key", "", "the same `key` gives the same snapshot")
	cmd.AddCommand(a.snapshotListCommand(), a.snapshotRemoveCommand())
	return cmd
}

func (a *app) snapshotListCommand() *cobra.Command {
	var session string
	cmd := &cobra.Command{
		Use:   "ls [flags]",
		Short: "List snapshots",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			f := cove.SnapshotFilter{}
			if session != "" {
				if f.Session, err = sessionID(session); err != nil {
					return err
				}
			}
			p, err := a.lasting(cmd)
			if err != nil {
				return err
			}
			defer func() { err = joinTidy(err, p.close()) }()
			return a.listSnapshots(cmd.Context(), p, f)
		},
	}
	cmd.Flags().StringVar(&session, "sandbox", "", "only those of the sandbox with this `ID`")
	return cmd
}

func (a *app) listSnapshots(ctx context.Context, p cove.Platform, f cove.SnapshotFilter) error {
	rows := [][]string{}
	now := time.Now()
	for s, err := range p.Snapshots().List(ctx, f) {
		if err != nil {
			return err
		}
		if a.json {
			if err := a.printJSON(wire.SnapshotOf(s)); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{string(s.ID), s.Name, string(s.Session), s.Provider, s.Template, s.Size.String(), ago(now, s.CreatedAt)})
	}
	if a.json {
		return nil
	}
	return table(a.sys.Stdout, []string{"ID", "NAME", "SANDBOX", "PROVIDER", "TEMPLATE", "SIZE", "AGE"}, rows)
}

func (a *app) snapshotRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rm ID...",
		Short: "Remove snapshots",
		Args:  arguments(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.eachSession(cmd, args, func(ctx context.Context, p link, id cove.ID) error {
				if err := p.Snapshots().Delete(ctx, id); err != nil {
					return err
				}
				return a.print(map[string]cove.ID{"snapshot_id": id}, func(w io.Writer) error { return printID(w, id) })
			})
		},
	}
}

func (a *app) forkCommand() *cobra.Command {
	var req cove.ForkRequest
	var metadata []string
	cmd := &cobra.Command{
		Use:   "fork [flags] ID",
		Short: "Double a sandbox and print the copy's id",
		Args:  arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if req.Metadata, err = labels("--label", metadata); err != nil {
				return err
			}
			return a.withSession(cmd, args[0], func(ctx context.Context, p link, id cove.ID) error {
				s, err := p.Snapshots().Fork(ctx, id, req)
				if err != nil {
					return err
				}
				return a.print(wire.SessionOf(s), func(w io.Writer) error { return printID(w, s.ID) })
			})
		},
	}
	cmd.Flags().StringVar(&req.User, "user", "", "whose the copy is, by `name`")
	cmd.Flags().StringVar(&req.Thread, "thread", "", "which conversation the copy belongs to, by `name`")
	cmd.Flags().StringArrayVar(&metadata, "label", nil, "a label of the copy, as `NAME=value`; may be repeated")
	cmd.Flags().StringVar(&req.IdempotencyKey, "idempotency-key", "", "the same `key` gives the same copy")
	return cmd
}
