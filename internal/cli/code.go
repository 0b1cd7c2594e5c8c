//go:build !lean

package cli

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/wire"
)

// maxCode bounds code that comes on standard input; the engine has its own.
const maxCode = 16<<20 + 1

// defaultLanguage is that of code which names none.
const defaultLanguage = "python"

// codeFlags are the flags about one piece of code.
type codeFlags struct {
	language, context, timeout, save string

	imports          string
	trusted, explain bool
}

func (f *codeFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.language, "language", "l", defaultLanguage, "the `language`: python, node, typescript or bash")
	cmd.Flags().StringVar(&f.context, "context", "", "the `context` to run in, made where there is none; the language's own if not given")
	cmd.Flags().StringVar(&f.save, "save", "", "write the images that it shows to files in this `directory`")
	cmd.Flags().StringVar(&f.timeout, "timeout", "", "stop it after this `time`, such as 30s (SANDBOX_TIMEOUT_SEC)")
	cmd.Flags().StringVar(&f.imports, "imports", "", "what becomes of dangerous imports in Python: off, warn or block; only stricter than the `mode` of the settings")
	cmd.Flags().BoolVar(&f.trusted, "trusted", false, "do not look at imports; the journal records it")
	cmd.Flags().BoolVar(&f.explain, "explain", false, "show what Python code imports and what the policy decides, and run nothing")
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
	req := cove.CodeRequest{Language: f.language, Code: text, Context: f.context, Limits: cove.Limits{Wall: wall}, Imports: cove.ImportMode(f.imports), Trusted: f.trusted}
	if f.context != "" && !cmd.Flags().Changed("language") {
		req.Language = ""
	}
	return req, req.Validate()
}

// fit refuses flags that would be of no effect.
func (f *codeFlags) fit(session string, text bool, spec cove.Spec) error {
	switch {
	case session == "" && f.context != "":
		return cove.InvalidField("--context", "is of no use without a session; name one with -s")
	case session != "" && !reflect.DeepEqual(spec, cove.Spec{}):
		return cove.InvalidField("--session", "names a sandbox that is there; what a new one has, such as --template, --memory or --policy, cannot be said of it")
	case text && cove.Language(f.language) != "python":
		return cove.InvalidField("--text", "is for Python; leave out -l %.40q", f.language)
	case text && f.save != "":
		return cove.InvalidField("--text", "shows no images; leave out --save")
	}
	return nil
}

func (a *app) codeCommand() *cobra.Command {
	var f codeFlags
	var s specFlags
	var session string
	var text bool
	cmd := &cobra.Command{
		Use:   "code [flags] CODE|-",
		Short: "Run a piece of code in a fresh sandbox or in a session",
		Long: `Runs a piece of code and shows what it prints and its last value.

Without a session the sandbox is fresh and removed afterwards. With -s the code
runs in that session, and variables and imports stay for the next time. The exit
code is 0, or 1 when the code raised an error, or the one that it ended with;
124 means that the time ran out, 126 that a policy refused the code, 125 that
Cove failed. Images that it shows are noted, and written to files with --save.

With --text the answer is what a model gets from the tool run_python_code: a
text, whatever happens, and the exit code is 0.`,
		Example: `  cove code 'print(6 * 7)'
  cove code -l bash - < script.sh
  cove code -s 01m1qdyb7y3wn0x7gdkb2wq0qe 'x += 1; x'`,
		Args: passing(arguments(1, 1)),
		RunE: passingRun(func(cmd *cobra.Command, args []string) error {
			req, err := f.request(cmd, args[0], a.sys)
			if err != nil {
				return err
			}
			spec, err := s.spec(a.sys)
			if err != nil {
				return err
			}
			if err := f.fit(session, text, spec); err != nil {
				return err
			}
			switch {
			case f.explain && session != "":
				return a.explainIn(cmd, session, req)
			case f.explain:
				return a.explainOnce(cmd, spec, req)
			case text:
				return a.codeText(cmd, session, spec, req)
			case session != "":
				return a.codeIn(cmd, session, req, f.save)
			}
			return a.codeOnce(cmd, spec, req, f.save)
		}),
	}
	f.add(cmd)
	s.add(cmd)
	cmd.Flags().BoolVar(&text, "text", false, "answer as run_python_code does")
	cmd.Flags().StringVarP(&session, "session", "s", "", "the session to run in, by its `ID`")
	passFlags(cmd)
	return cmd
}

func (a *app) codeOnce(cmd *cobra.Command, spec cove.Spec, req cove.CodeRequest, save string) (err error) {
	ctx := cmd.Context()
	p, err := a.reachOnce(cmd, spec, func(cfg config.Config) (*daemon.Local, error) {
		return daemon.OneShotCode(ctx, cfg, spec, req.Language)
	})
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
	return a.runCode(ctx, p, s.ID, req, save, true)
}

// codeIn runs code in a session that stays.
func (a *app) codeIn(cmd *cobra.Command, session string, req cove.CodeRequest, save string) error {
	return a.withSession(cmd, session, func(ctx context.Context, p link, id cove.ID) error {
		p.timed(&req.Limits)
		return a.runCode(ctx, p, id, req, save, false)
	})
}

// runInContext runs code, and makes the context that it names where there is
// none: nothing has run then.
func runInContext(ctx context.Context, in cove.Contexts, req cove.CodeRequest) (*cove.CodeResult, error) {
	res, err := in.Run(ctx, req)
	if req.Context == "" || cove.CodeOf(err) != cove.NotFound || errors.Is(err, cove.ErrSessionNotFound) {
		return res, err
	}
	language := req.Language
	if language == "" {
		language = defaultLanguage
	}
	if _, err := in.Open(ctx, cove.ContextSpec{Name: req.Context, Language: language}); err != nil {
		return nil, err
	}
	return in.Run(ctx, req)
}

func (a *app) runCode(ctx context.Context, p cove.Platform, id cove.ID, req cove.CodeRequest, save string, whole bool) error {
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
	res, err := runInContext(ctx, p.Contexts(id), req)
	if out.broken() {
		return exitError{exitPipe}
	}
	if err != nil {
		return err
	}
	saved, err := saveImages(save, res.Results)
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
	} else if err := a.showValues(res, saved); err != nil {
		return err
	}
	if !a.json {
		a.warnImports(res.Security)
	}
	if res.Error != nil && res.Outcome == cove.Exited && res.ExitCode == 0 {
		return exitError{exitProblem}
	}
	return a.ended(&res.Execution)
}

// escapeLines is escape for a text of more than one line.
func escapeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.ReplaceAll(escape(l), `\t`, "\t")
	}
	return strings.Join(lines, "\n")
}
