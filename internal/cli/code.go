//go:build !lean

package cli

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// maxCode bounds code that comes on standard input; the engine has its own.
const maxCode = 16<<20 + 1

// codeFlags are the flags about one piece of code.
type codeFlags struct {
	language, context, timeout string
}

func (f *codeFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.language, "language", "l", "python", "the `language`: python, node or bash")
	cmd.Flags().StringVar(&f.timeout, "timeout", "", "stop it after this `time`, such as 30s (SANDBOX_TIMEOUT_SEC)")
}

// request takes the code from the argument, or from standard input for "-".
func (f *codeFlags) request(cmd *cobra.Command, text string, sys System) (cove.CodeRequest, error) {
	wall, err := span("--timeout", f.timeout)
	if err != nil {
		return cove.CodeRequest{}, err
	}
	if text == "-" {
		data, err := io.ReadAll(io.LimitReader(sys.Stdin, maxCode))
		if err != nil {
			return cove.CodeRequest{}, cove.Wrap(cove.Unavailable, err, "the code cannot be read from standard input")
		}
		text = string(data)
	}
	req := cove.CodeRequest{Language: f.language, Code: text, Context: f.context, Limits: cove.Limits{Wall: wall}}
	if f.context != "" && !cmd.Flags().Changed("language") {
		req.Language = ""
	}
	return req, req.Validate()
}

func (a *app) codeCommand() *cobra.Command {
	var f codeFlags
	var s specFlags
	var session string
	cmd := &cobra.Command{
		Use:   "code [flags] CODE|-",
		Short: "Run a piece of code in a fresh sandbox or in a session",
		Long: `Runs a piece of code and shows what it prints and its last value.

Without a session the sandbox is fresh and removed afterwards. With -s the code
runs in that session, and variables and imports stay for the next time. The exit
code is 0, or 1 when the code raised an error; 124 means that the time ran out,
125 that Cove failed.`,
		Example: `  cove code 'print(6 * 7)'
  cove code -l bash - < script.sh
  cove code -s 01m1qdyb7y3wn0x7gdkb2wq0qe 'x += 1; x'`,
		Args: passing(arguments(1, 1)),
		RunE: passingRun(func(cmd *cobra.Command, args []string) error {
			req, err := f.request(cmd, args[0], a.sys)
			if err != nil {
				return err
			}
			if session != "" {
				return a.codeIn(cmd, session, req)
			}
			spec, err := s.spec(a.sys)
			if err != nil {
				return err
			}
			return a.codeOnce(cmd, spec, req)
		}),
	}
	f.add(cmd)
	s.add(cmd)
	cmd.Flags().StringVarP(&session, "session", "s", "", "the session to run in, by its `ID`")
	passFlags(cmd)
	return cmd
}

func (a *app) codeOnce(cmd *cobra.Command, spec cove.Spec, req cove.CodeRequest) (err error) {
	ctx := cmd.Context()
	p, err := a.oneShot(cmd, spec, false)
	if err != nil {
		return err
	}
	defer func() { err = joinTidy(err, p.close()) }()
	s, err := a.open(ctx, p, cove.OpenRequest{Spec: spec})
	if err != nil {
		return err
	}
	defer func() { err = joinTidy(err, closeSession(ctx, p, s.ID)) }()
	if p.remote {
		p.timed(&req.Limits)
	}
	return a.runCode(ctx, p, s.ID, req, true)
}

// codeIn runs code in a session that stays.
func (a *app) codeIn(cmd *cobra.Command, session string, req cove.CodeRequest) error {
	return a.withSession(cmd, session, func(ctx context.Context, p link, id cove.ID) error {
		p.timed(&req.Limits)
		return a.runCode(ctx, p, id, req, false)
	})
}

func (a *app) runCode(ctx context.Context, p cove.Platform, id cove.ID, req cove.CodeRequest, whole bool) error {
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
	res, err := p.Contexts(id).Run(ctx, req)
	if out.broken() {
		return exitError{exitPipe}
	}
	if err != nil {
		return err
	}
	if a.json {
		if whole {
			all.fill(&res.Execution)
		}
		if err := a.printJSON(wire.CodeResultOf(id, res)); err != nil {
			return err
		}
	} else if err := a.showValues(res); err != nil {
		return err
	}
	if res.Error != nil && res.Outcome == cove.Exited && res.ExitCode == 0 {
		return exitError{exitProblem}
	}
	return a.ended(&res.Execution)
}

// showValues prints what the code showed beside what it printed, escaped but
// for its line breaks.
func (a *app) showValues(res *cove.CodeResult) error {
	for _, rich := range res.Results {
		if text, ok := rich["text/plain"]; ok {
			if _, err := io.WriteString(a.sys.Stdout, escapeLines(text)+"\n"); err != nil {
				return err
			}
		}
	}
	if res.Error == nil {
		return nil
	}
	text := res.Error.Traceback
	if text == "" {
		text = res.Error.Name + ": " + res.Error.Value
	}
	_, err := io.WriteString(a.sys.Stderr, escapeLines(strings.TrimRight(text, "\n"))+"\n")
	return err
}

// escapeLines is escape for a text of more than one line.
func escapeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.ReplaceAll(escape(l), `\t`, "\t")
	}
	return strings.Join(lines, "\n")
}
