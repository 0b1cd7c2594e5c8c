package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
)

// quiet is how long a running program must write nothing before logs without
// --follow takes it that all has been shown.
const quiet = 300 * time.Millisecond

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
	seen := func() {}
	if !follow && info.Running {
		idle := time.AfterFunc(quiet, cancel)
		defer idle.Stop()
		seen = func() { idle.Reset(quiet) }
	}
	out := &relay{sys: a.sys, cancel: cancel}
	for chunk, err := range procs.Connect(ctx, info.PID, 0) {
		switch {
		case out.broken():
			return exitError{exitPipe}
		case err != nil && ctx.Err() != nil && !follow:
			return nil
		case err != nil:
			return err
		}
		seen()
		out.write(chunk)
	}
	if out.broken() {
		return exitError{exitPipe}
	}
	return nil
}
