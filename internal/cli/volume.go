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

func (a *app) volumeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "volume",
		Short: "Keep folders that outlive sandboxes: create, list, remove",
		Long: `A volume is a folder that outlives sandboxes. Several of them may have it at a
time: cove run, cove code and cove sandbox create take it with
--volume NAME:/data, or NAME:/data:rw to write to it.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.volumeCreateCommand(), a.volumeListCommand(), a.volumeRemoveCommand())
	return cmd
}

func (a *app) volumeCreateCommand() *cobra.Command {
	var req cove.VolumeRequest
	cmd := &cobra.Command{
		Use:   "create [flags] NAME",
		Short: "Make an empty volume and print its id",
		Args:  arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.Name = args[0]
			if err := req.Validate(); err != nil {
				return err
			}
			return a.withVolumes(cmd, func(ctx context.Context, all cove.Volumes) error {
				v, err := all.Create(ctx, req)
				if err != nil {
					return err
				}
				return a.print(wire.SavedVolumeOf(v), func(w io.Writer) error { return printID(w, v.ID) })
			})
		},
	}
	cmd.Flags().StringVar(&req.IdempotencyKey, "idempotency-key", "", "the same `key` gives the same volume")
	return cmd
}

// withVolumes does something with the volumes of the lasting platform.
func (a *app) withVolumes(cmd *cobra.Command, do func(ctx context.Context, all cove.Volumes) error) (err error) {
	p, err := a.lasting(cmd)
	if err != nil {
		return err
	}
	defer func() { err = joinTidy(err, p.close()) }()
	return do(cmd.Context(), p.Volumes())
}

func (a *app) volumeListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List volumes",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.withVolumes(cmd, a.listVolumes) },
	}
}

func (a *app) listVolumes(ctx context.Context, all cove.Volumes) error {
	rows := [][]string{}
	now := time.Now()
	for v, err := range all.List(ctx, cove.VolumeFilter{}) {
		if err != nil {
			return err
		}
		if a.json {
			if err := a.printJSON(wire.SavedVolumeOf(v)); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{v.Name, string(v.ID), v.Limit.String(), ago(now, v.CreatedAt)})
	}
	if a.json {
		return nil
	}
	return table(a.sys.Stdout, []string{"NAME", "ID", "LIMIT", "AGE"}, rows)
}

func (a *app) volumeRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rm NAME...",
		Short: "Remove volumes with all that is in them",
		Long: `Removes volumes, by name or id, with all that is in them. One that a sandbox
has, also a stopped one, is refused.`,
		Args: arguments(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withVolumes(cmd, func(ctx context.Context, all cove.Volumes) error { return a.removeVolumes(ctx, all, args) })
		},
	}
}

// removeVolumes removes each volume, all of them also when one fails.
func (a *app) removeVolumes(ctx context.Context, all cove.Volumes, refs []string) error {
	var failed error
	for _, ref := range refs {
		err := all.Delete(ctx, ref)
		if err == nil {
			err = a.print(map[string]string{"volume": ref}, func(w io.Writer) error {
				_, err := io.WriteString(w, escape(ref)+"\n")
				return err
			})
		}
		if failed != nil && err != nil {
			a.complain(failed)
		}
		if err != nil {
			failed = err
		}
	}
	return failed
}
