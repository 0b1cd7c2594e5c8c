//go:build !lean

package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// maxQuestion bounds a question that comes on standard input; the platform has
// its own.
const maxQuestion = 1<<20 + 1

// dataFlags are the flags about one question to data.
type dataFlags struct {
	files                     []string
	dataset, session, saveAs  string
	provider, flavor, timeout string
	maxOutput                 string
	maxRows                   int
	csv, explain              bool
}

func (f *dataFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.files, "file", nil, "a `file` that is a table, CSV, Parquet or JSON, as F[=name]; with -s one of the session's; may be repeated")
	flags.StringVar(&f.dataset, "dataset", "", "the dataset to ask, by its `id`; cove dataset ls shows them")
	flags.StringVarP(&f.session, "session", "s", "", "the session to run in, by its `ID`; its tables stay loaded")
	flags.StringVar(&f.provider, "provider", "", "the `name` of the provider that answers (SANDBOX_PROVIDER)")
	flags.StringVar(&f.flavor, "flavor", "", "the size of the place by its `name`, such as small (MSB_DEFAULT_FLAVOR)")
	flags.IntVar(&f.maxRows, "max-rows", 0, "the `number` of rows to show at most, 1 to 1000; 200 if not given")
	flags.StringVar(&f.maxOutput, "max-output", "", "the bytes to show at most, a `size` up to 1000000; 64k if not given")
	flags.StringVar(&f.timeout, "timeout", "", "stop it after this `time`, 1s to 60s; 10s if not given")
	flags.BoolVar(&f.csv, "csv", false, "print CSV; NULL is nothing, and an empty text is two quotes")
	flags.BoolVar(&f.explain, "explain", false, "show what the policy decides, and run nothing")
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return platformError{cove.Errorf(cove.Invalid, "%s", err).Remedy("%s --help lists the flags", c.CommandPath())}
	})
}

// request takes the question from the argument, or from standard input for "-".
func (f *dataFlags) request(kind cove.QueryType, text string, sys System) (req cove.RunRequest, err error) {
	req = cove.RunRequest{Type: kind, Dataset: f.dataset, SaveAs: f.saveAs, Provider: f.provider, Flavor: f.flavor, MaxRows: f.maxRows}
	if req.Timeout, err = span("--timeout", f.timeout); err != nil {
		return req, err
	}
	if req.MaxOutput, err = size("--max-output", f.maxOutput); err != nil {
		return req, err
	}
	if text == "-" {
		data, err := io.ReadAll(io.LimitReader(sys.Stdin, maxQuestion))
		if err != nil {
			return req, cove.Wrap(cove.Unavailable, err, "the question cannot be read from standard input")
		}
		text = string(data)
	}
	if kind == cove.QueryPython {
		req.Python = text
	} else {
		req.SQL = text
	}
	check := req
	if f.session != "" {
		if req.Session, err = sessionID(f.session); err != nil {
			return req, err
		}
		check.Session = req.Session
	}
	return req, check.WithDefaults().Validate()
}

// fit refuses flags that would be of no effect.
func (f *dataFlags) fit() error {
	switch {
	case f.session != "" && (f.provider != "" || f.flavor != ""):
		return cove.InvalidField("--session", "names a sandbox that is there; --provider and --flavor cannot be said of it")
	case len(f.files) > 0 && f.dataset != "":
		return cove.InvalidField("--file", "goes without --dataset; ask one of them at a time")
	}
	return nil
}

func (a *app) sqlCommand() *cobra.Command {
	var f dataFlags
	cmd := &cobra.Command{
		Use:   "sql [flags] QUERY|-",
		Short: "Ask a question of files in SQL",
		Long: `Runs one SELECT over files as tables, inside a sandbox, and prints the rows.

A file given with --file is a table of its name without the ending. Without files
the datasets of COVE_DATASETS can be asked, as dataset.table. The dialect is that
of DuckDB; what would write, read other files or reach the network is refused.

The exit code is 0, or 1 when the query failed or was refused; 124 means that the
time ran out, 125 that Cove failed.`,
		Example: `  cove sql --file orders.csv 'SELECT status, count(*) FROM orders GROUP BY 1'
  cove sql --file jan.csv=sales --csv 'SELECT * FROM sales' > out.csv
  cove sql --dataset ecommerce 'SELECT count(*) FROM orders'`,
		Args: passing(arguments(1, 1)),
		RunE: passingRun(func(cmd *cobra.Command, args []string) error { return a.question(cmd, &f, cove.QuerySQL, args[0]) }),
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.saveAs, "save-as", "", "hand the rows to the Python of the session as a frame of this `name`")
	return cmd
}

func (a *app) runPythonCommand() *cobra.Command {
	var f dataFlags
	cmd := &cobra.Command{
		Use:   "run-python [flags] CODE|-",
		Short: "Ask a question of files in Python",
		Long: `Runs Python over files as pandas frames, inside a sandbox, and prints what it
prints and its result.

A file given with --file is a frame of its name without the ending, and dfs has all
of them. The result is result_df, result_rows with result_columns, result, or the
value of the last expression. pandas, numpy, math, statistics, re and datetime can
be imported; what would read or write files is refused. cove code has no such rules.

The exit code is 0, or 1 when the code failed or was refused; 124 means that the
time ran out, 125 that Cove failed.`,
		Example: `  cove run-python --file orders.csv 'orders.groupby("status").size()'
  cove run-python --dataset ecommerce - < analysis.py`,
		Args: passing(arguments(1, 1)),
		RunE: passingRun(func(cmd *cobra.Command, args []string) error { return a.question(cmd, &f, cove.QueryPython, args[0]) }),
	}
	f.add(cmd)
	return cmd
}

// question asks one and shows the answer.
func (a *app) question(cmd *cobra.Command, f *dataFlags, kind cove.QueryType, text string) error {
	if err := f.fit(); err != nil {
		return err
	}
	if f.csv && a.json {
		return cove.InvalidField("--csv", "goes without --json")
	}
	req, err := f.request(kind, text, a.sys)
	if err != nil {
		return err
	}
	if req.Session != "" {
		for _, text := range f.files {
			req.Files = append(req.Files, fileFlag(text, func(string) bool { return false }))
		}
		return a.withSession(cmd, f.session, func(ctx context.Context, p link, _ cove.ID) error { return a.answer(ctx, p, f, req) })
	}
	return a.questionOnce(cmd, f, req)
}

// questionOnce asks where nothing stays behind: this process or a server.
func (a *app) questionOnce(cmd *cobra.Command, f *dataFlags, req cove.RunRequest) (err error) {
	ctx := cmd.Context()
	files := make([]cove.RunFile, len(f.files))
	for i, text := range f.files {
		files[i] = fileFlag(text, isFile)
	}
	spec := cove.Spec{Provider: f.provider, Flavor: f.flavor}
	p, err := a.reachOnce(cmd, spec, func(cfg config.Config) (*daemon.Local, error) {
		return daemon.OneShotData(ctx, cfg, f.provider, files)
	})
	if err != nil {
		return err
	}
	defer func() { err = joinTidy(err, p.close()) }()
	switch {
	case len(files) > 0 && p.remote:
		if err := daemon.CheckFiles(files); err != nil {
			return err
		}
		s, err := a.openOnce(ctx, p, spec)
		if err != nil {
			return err
		}
		defer func() { err = joinTidy(err, closeSession(ctx, p, s.ID)) }()
		req.Session, req.Provider, req.Flavor = s.ID, "", ""
		if req.Files, err = sendFiles(ctx, p.Files(s.ID), files); err != nil {
			return err
		}
		return a.answer(ctx, p, f, req)
	case len(files) > 0:
		req.Dataset = daemon.FilesDataset
	}
	return a.answer(ctx, p, f, req)
}

// fileFlag reads F[=name]. A file whose own name has the sign is meant where it is
// there.
func fileFlag(text string, there func(string) bool) cove.RunFile {
	i := strings.LastIndexByte(text, '=')
	if i <= 0 || there(text) {
		return cove.RunFile{Path: text}
	}
	return cove.RunFile{Path: text[:i], Name: text[i+1:]}
}

func isFile(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// sendFiles puts files into a session, each into a folder of its own, so that all
// keep their names.
func sendFiles(ctx context.Context, to cove.Files, files []cove.RunFile) ([]cove.RunFile, error) {
	var out []cove.RunFile
	for i, f := range files {
		name := path.Join("data", strconv.Itoa(i), filepath.Base(f.Path))
		if err := sendFile(ctx, to, f.Path, name); err != nil {
			return nil, err
		}
		out = append(out, cove.RunFile{Name: f.Name, Path: name})
	}
	return out, nil
}

func sendFile(ctx context.Context, to cove.Files, from, name string) error {
	f, err := os.Open(from) //nolint:gosec // the user's own choice
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		return cove.InvalidField("--file", "%.200q cannot be read: %v", from, err)
	}
	defer f.Close() //nolint:errcheck // only read
	return to.Write(ctx, name, f, 0o644)
}
