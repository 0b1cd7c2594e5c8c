//go:build !lean

package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func (a *app) execCommand() *cobra.Command {
	var e execFlags
	var env []string
	var background bool
	var trial trialFlags
	cmd := &cobra.Command{
		Use:   "exec [flags] ID [--] PROGRAM [ARGUMENT...]",
		Short: "Run a program in a sandbox",
		Long: `Runs a program in a sandbox, as cove run does in a fresh one.

With -d the program runs in the background and its number is printed; logs,
attach and ps take it from there.

With --trial what it changes in the workspace is put on trial: the changes are
listed on standard error and stay until cove sandbox commit keeps them or cove
sandbox discard takes them back.`,
		Args: passing(arguments(2, -1)),
		RunE: passingRun(func(cmd *cobra.Command, args []string) error {
			id, argv := args[0], args[1:]
			if argv[0] == "--" { // flags ended at ID, so that this one was left
				argv = argv[1:]
			}
			req, err := e.request(argv, a.sys)
			if err != nil {
				return err
			}
			if req.Env, err = environment("--env", env, a.sys); err != nil {
				return err
			}
			then, err := trial.end(background)
			if err != nil {
				return err
			}
			return a.withSession(cmd, id, func(ctx context.Context, p link, id cove.ID) error {
				if background {
					return a.startProgram(ctx, p.Processes(id), req)
				}
				p.timed(&req.Limits)
				if trial.trial {
					return a.execOnTrial(ctx, p, id, cove.TrialRequest{ExecRequest: req, Then: then})
				}
				return a.exec(ctx, p.Processes(id), req, false)
			})
		}),
	}
	e.add(cmd)
	cmd.Flags().StringArrayVarP(&env, "env", "e", nil, "set a variable, as `NAME[=value]`, or pass it on; may be repeated")
	cmd.Flags().BoolVarP(&background, "detach", "d", false, "run it in the background and print its number")
	trial.add(cmd)
	passFlags(cmd)
	return cmd
}

// startProgram starts a background program. Input that this process would have
// to stay for is not passed on.
func (a *app) startProgram(ctx context.Context, procs cove.Processes, req cove.ExecRequest) error {
	req.Stdin = nil
	info, err := procs.Start(ctx, req)
	if err != nil {
		return err
	}
	if r := info.Result; r != nil && r.Outcome == cove.Blocked {
		return a.ended(r)
	}
	return a.print(wire.ProcessOf(*info), func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%d\n", info.PID)
		return err
	})
}

func (a *app) sandboxCodeCommand() *cobra.Command {
	var f codeFlags
	cmd := &cobra.Command{
		Use:   "code [flags] ID CODE|-",
		Short: "Run a piece of code in a sandbox",
		Long: `Runs a piece of code in a sandbox. Variables and imports stay for the next
time.`,
		Args: passing(arguments(2, 2)),
		RunE: passingRun(func(cmd *cobra.Command, args []string) error {
			req, err := f.request(cmd, args[1], a.sys)
			if err != nil {
				return err
			}
			if f.explain {
				return a.explainIn(cmd, args[0], req)
			}
			return a.codeIn(cmd, args[0], req, f.save)
		}),
	}
	f.add(cmd)
	passFlags(cmd)
	return cmd
}

func (a *app) psCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ps ID",
		Short: "List the background programs of a sandbox",
		Args:  arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSession(cmd, args[0], func(ctx context.Context, p link, id cove.ID) error {
				return a.listPrograms(ctx, p.Processes(id))
			})
		},
	}
}

func (a *app) listPrograms(ctx context.Context, procs cove.Processes) error {
	rows := [][]string{}
	now := time.Now()
	for info, err := range procs.List(ctx) {
		if err != nil {
			return err
		}
		if a.json {
			if err := a.printJSON(wire.ProcessOf(info)); err != nil {
				return err
			}
			continue
		}
		state := "running"
		if r := info.Result; r != nil {
			state = fmt.Sprintf("%s (%d)", r.Outcome, r.ExitCode)
		}
		rows = append(rows, []string{strconv.Itoa(int(info.PID)), state, ago(now, info.StartedAt), info.Command})
	}
	if a.json {
		return nil
	}
	return table(a.sys.Stdout, []string{"PID", "STATUS", "AGE", "COMMAND"}, rows)
}

// program reads the number of a background program; without one it is the
// newest.
func program(ctx context.Context, procs cove.Processes, args []string) (cove.ProcessInfo, error) {
	want := 0
	if len(args) > 0 {
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 1 {
			return cove.ProcessInfo{}, cove.InvalidField("PID", "%.40q is not the number of a program; cove sandbox ps shows them", args[0])
		}
		want = n
	}
	var found cove.ProcessInfo
	for info, err := range procs.List(ctx) {
		if err != nil {
			return found, err
		}
		if want == 0 && info.PID > found.PID || int(info.PID) == want {
			found = info
		}
	}
	if found.PID == 0 && want != 0 {
		return found, cove.Errorf(cove.NotFound, "the sandbox has no background program %d", want).Remedy("cove sandbox ps shows them")
	}
	if found.PID == 0 {
		return found, cove.Errorf(cove.NotFound, "the sandbox has no background program").Remedy("cove sandbox exec -d starts one")
	}
	return found, nil
}

func (a *app) statsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "stats [ID]",
		Short: "Show what a sandbox uses, or all together",
		Args:  arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 1 {
				return a.withSession(cmd, args[0], func(ctx context.Context, p link, id cove.ID) error {
					u, err := p.Sessions().Usage(ctx, id)
					if err != nil {
						return err
					}
					return a.print(wire.UsageOf(u), func(w io.Writer) error { return printUsage(w, u) })
				})
			}
			p, err := a.lasting(cmd)
			if err != nil {
				return err
			}
			defer func() { err = joinTidy(err, p.close()) }()
			s, err := p.Admin().Stats(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(wire.StatsOf(s), func(w io.Writer) error { return printStats(w, s) })
		},
	}
}

func printUsage(w io.Writer, u cove.Usage) error {
	return table(w, []string{"CPU", "MEMORY", "PEAK", "PIDS", "DISK", "FILES"}, [][]string{{
		u.CPU.Round(time.Millisecond).String(), u.Memory.String(), u.PeakMemory.String(),
		strconv.Itoa(u.PIDs), u.Disk.String(), strconv.FormatInt(u.Files, 10),
	}})
}

func printStats(w io.Writer, s *cove.Stats) error {
	most := "no bound"
	if s.MaxSessions > 0 {
		most = strconv.Itoa(s.MaxSessions)
	}
	return table(w, []string{"SESSIONS", "MOST", "MEMORY", "OF", "POOL", "QUEUED", "EXECUTIONS", "REUSED", "UP", "PROVIDER", "NODE"}, [][]string{{
		strconv.Itoa(s.ActiveSessions), most, s.Memory.String(), s.MaxMemory.String(),
		fmt.Sprintf("%d/%d", s.PoolAvailable, s.PoolSize), strconv.Itoa(s.Queued), strconv.FormatInt(s.Executions, 10),
		fmt.Sprintf("%.0f%%", 100*s.ReuseRate()), coarse(s.Uptime), s.Provider, s.Node,
	}})
}
