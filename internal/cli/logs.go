//go:build !lean

package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
)

func (a *app) logsCommand() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs [flags] ID [PID]",
		Short: "Show what a background program has written",
		Long: `Shows what a background program has written: that with the number PID, or the
newest. With -f it goes on until the program has ended.`,
		Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSession(cmd, args[0], func(ctx context.Context, p link, id cove.ID) error {
				procs := p.Processes(id)
				info, err := program(ctx, procs, args[1:])
				if err != nil {
					return err
				}
				return a.showLog(ctx, procs, info, follow)
			})
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the program has ended")
	return cmd
}

func (a *app) showLog(ctx context.Context, procs cove.Processes, info cove.ProcessInfo, follow bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end := int64(-1) // of what there is to show; -1 means until the program has ended
	if !follow && info.Running {
		page, err := procs.Output(ctx, info.OutputID, cove.OutputRange{Limit: 1})
		if err != nil {
			return err
		}
		end = page.Total + page.Dropped
	}
	if end == 0 {
		return nil
	}
	out := &relay{sys: a.sys, cancel: cancel}
	for chunk, err := range procs.Connect(ctx, info.PID, 0) {
		if out.broken() {
			break
		}
		if err != nil {
			return err
		}
		out.write(chunk)
		if end > 0 && chunk.Offset+int64(len(chunk.Data)) >= end {
			break
		}
	}
	if out.broken() {
		return exitError{exitPipe}
	}
	return nil
}
