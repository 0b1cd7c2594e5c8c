package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// tidyTime bounds the clean-up after a command that ended or was interrupted.
const tidyTime = 30 * time.Second

func (a *app) runCommand() *cobra.Command {
	var f specFlags
	var e execFlags
	var explain bool
	cmd := &cobra.Command{
		Use:   "run [flags] [--] PROGRAM [ARGUMENT...]",
		Short: "Run one program in a fresh sandbox",
		Long: `Runs one program in a fresh sandbox and removes the sandbox afterwards.

Standard input goes in and all output comes out as it happens. The exit code is
the program's own; 124 means that the time ran out, 125 that Cove failed, 126
that the command policy refused the program.`,
		Example: `  cove run -- python3 -c 'print(6 * 7)'
  cove run --timeout 5s --memory 256m --allow-net pypi.org -- pip download six
  cove run --policy agent-bash --explain -c 'cat x | rm y'`,
		Args: passing(arguments(1, -1)),
		RunE: passingRun(func(cmd *cobra.Command, args []string) error {
			spec, err := f.spec(a.sys)
			if err != nil {
				return err
			}
			req, err := e.request(args, a.sys)
			if err != nil {
				return err
			}
			if explain {
				return a.explain(cmd, spec, req)
			}
			return a.runOnce(cmd, spec, req)
		}),
	}
	f.add(cmd)
	e.add(cmd)
	cmd.Flags().BoolVar(&explain, "explain", false, "show what the command policy decides, and run nothing")
	passFlags(cmd)
	return cmd
}

// passFlags ends a command's own flags at the first argument, which is where
// those of the program begin, and gives bad flags the code of the platform.
func passFlags(cmd *cobra.Command) {
	cmd.Flags().SetInterspersed(false)
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return platformError{cove.Errorf(cove.Invalid, "%s", err).Remedy("%s --help lists the flags", c.CommandPath())}
	})
}

// passing and passingRun mark the errors of a command that passes a program's
// exit code on.
func passing(check cobra.PositionalArgs) cobra.PositionalArgs {
	return cobra.PositionalArgs(passingRun(check))
}

func passingRun(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if _, ok := errors.AsType[exitError](err); err == nil || ok {
			return err
		}
		return platformError{err}
	}
}

// execFlags are the flags about one program.
type execFlags struct {
	timeout, dir, maxOutput string
	line                    bool
}

func (f *execFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.timeout, "timeout", "", "kill it after this `time`, such as 30s (SANDBOX_TIMEOUT_SEC)")
	cmd.Flags().StringVarP(&f.dir, "workdir", "w", "", "the `directory` to run in; /workspace if not given")
	cmd.Flags().BoolVarP(&f.line, "line", "c", false, "run one argument as a line of the sandbox's shell")
	cmd.Flags().StringVar(&f.maxOutput, "max-output", "", "kill it after this much output, a `size` such as 10m")
}

func (f *execFlags) request(argv []string, sys System) (cove.ExecRequest, error) {
	wall, err := span("--timeout", f.timeout)
	if err != nil {
		return cove.ExecRequest{}, err
	}
	most, err := size("--max-output", f.maxOutput)
	if err != nil {
		return cove.ExecRequest{}, err
	}
	req := cove.ExecRequest{Argv: argv, Dir: f.dir, Stdin: sys.Stdin, Limits: cove.Limits{Wall: wall, Output: most}}
	if f.line {
		if len(argv) != 1 {
			return req, cove.InvalidField("--line", "goes with one argument, the whole line; put it in quotes")
		}
		req.Line, req.Argv = argv[0], nil
	}
	return req, req.Validate()
}

func (a *app) runOnce(cmd *cobra.Command, spec cove.Spec, req cove.ExecRequest) (err error) {
	ctx := cmd.Context()
	p, err := a.oneShot(cmd, spec, true)
	if err != nil {
		return err
	}
	defer func() { err = joinTidy(err, p.close()) }()
	s, err := a.openOnce(ctx, p, spec)
	if err != nil {
		return err
	}
	defer func() { err = joinTidy(err, closeSession(ctx, p, s.ID)) }()
	if p.apart {
		p.timed(&req.Limits)
	}
	return a.exec(ctx, p.Processes(s.ID), req, true)
}

// joinTidy keeps the program's exit code where only the clean-up failed too.
func joinTidy(err, tidy error) error {
	if err == nil {
		return tidy
	}
	return err
}

// closeSession ends a session also when the command was interrupted.
func closeSession(ctx context.Context, p cove.Platform, id cove.ID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
	defer cancel()
	_, err := p.Sessions().Close(ctx, id, false)
	if errors.Is(err, cove.NotFound) {
		return nil
	}
	return err
}

// exec runs a program, shows what it writes, and ends with its code. whole says
// that nobody can ask for what an answer leaves out, because the sandbox goes.
func (a *app) exec(ctx context.Context, procs cove.Processes, req cove.ExecRequest, whole bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &relay{sys: a.sys, cancel: cancel}
	var all collector
	switch {
	case !a.json:
		req.OnOutput = out.write
	case whole:
		req.OnOutput = all.write
	}
	ex, err := procs.Exec(ctx, req)
	if out.broken() {
		return exitError{exitPipe}
	}
	if err != nil {
		return err
	}
	if a.json {
		if whole {
			all.fill(ex)
		}
		if err := a.printJSON(wire.ExecutionOf(ex)); err != nil {
			return err
		}
	}
	return a.ended(ex)
}

// exitPipe is what a shell shows of a program that wrote to a closed pipe.
const exitPipe = 128 + 13

// relay passes the output of a program on. When nobody reads it any more, it
// ends the program.
type relay struct {
	sys    System
	cancel context.CancelFunc

	mu     sync.Mutex
	failed bool // guarded by mu
}

func (r *relay) write(c cove.Chunk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed {
		return
	}
	w := r.sys.Stdout
	if c.Stream == cove.Stderr {
		w = r.sys.Stderr
	}
	if _, err := w.Write(c.Data); err != nil {
		r.failed = true
		r.cancel()
	}
}

func (r *relay) broken() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// ended returns the exit code of a program as an error, and says why it ended
// where that was not its own doing.
func (a *app) ended(ex *cove.Execution) error {
	code, say := ex.ExitCode, ""
	switch ex.Outcome {
	case cove.Exited, cove.Signaled:
	case cove.TimedOut:
		code, say = exitTimeout, fmt.Sprintf("the time ran out after %s", ex.Wall.Round(time.Millisecond))
	case cove.OutOfMemory:
		say = "the memory ran out"
	case cove.OutputLimit:
		say = "it wrote more than it may"
	case cove.Killed:
		say = "it was killed"
	case cove.Blocked:
		code, say = exitRefused, refusal(ex.Refusal)
	}
	if ex.Restarted && !a.json {
		a.note("the sandbox had been stopped and was started again: its files are kept, variables and programs that ran are gone")
	}
	if say != "" && !a.json {
		_, _ = io.WriteString(a.sys.Stderr, "cove: "+escape(say)+"\n") // the exit code tells too
	}
	if code == 0 {
		return nil
	}
	return exitError{code}
}

// refusal is the sentence about what policy refused.
func refusal(r *cove.Refusal) string {
	if r == nil {
		return "the command policy refused it"
	}
	text := "blocked: " + r.Reason
	if r.Line > 0 {
		text += fmt.Sprintf(" (line %d, column %d)", r.Line, r.Column)
	}
	return text + "; rule " + r.Rule
}
