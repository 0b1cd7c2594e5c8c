// Command matrix runs the conformance suite on every provider and prints a table,
// provider by case: passed, unsupported or not run, each of the last two with the
// reason. With -write it puts the table into docs/providers.md, between the two
// marks that are there. With -from it runs nothing, and reads what a run of all tests
// has left.
//
// It fails, and writes nothing, when a case failed or a run was cut off. It must not
// know what a provider can do: a test that was skipped says why.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove/provider/providertest"
)

// page is where the table is kept.
const page = "docs/providers.md"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("matrix", flag.ContinueOnError)
	flags.SetOutput(stderr)
	write := flags.Bool("write", false, "write the table into "+page)
	only := flags.String("only", "", "run these alone, a list with commas of: "+strings.Join(names(columns()), ", "))
	from := flags.String("from", "", "read the events of go test -json from this `file` and run nothing; make test-all leaves .cache/test.json")
	versions := map[string]string{}
	flags.Func("version", "`name=text`: which version of its engine a provider is run against", func(text string) error {
		name, version, ok := strings.Cut(text, "=")
		if !ok {
			return errors.New("want name=text")
		}
		versions[name] = version
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(columns(), *only)
	if err != nil {
		return err
	}
	if *write && len(chosen) < len(columns()) {
		return errors.New("-write needs all providers; leave out -only")
	}
	t := newTable(chosen, providertest.Cases())
	if *from != "" {
		err = readFile(*from, t.read)
	} else {
		err = conform(ctx, chosen, t.read, stderr)
	}
	if err != nil {
		return err
	}
	for i, c := range t.columns {
		if v := versions[c.name]; v != "" {
			t.columns[i].against += " (" + v + ")"
		}
	}
	if _, err := io.WriteString(stdout, t.text()); err != nil {
		return err
	}
	if wrong := t.failed(); len(wrong) > 0 {
		return fmt.Errorf("%d failed:\n  %s", len(wrong), strings.Join(wrong, "\n  "))
	}
	if !*write {
		return nil
	}
	return replace(page, t.markdown())
}

// choose returns the columns that were asked for.
func choose(all []column, only string) ([]column, error) {
	if only == "" {
		return all, nil
	}
	var chosen []column
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(c column) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no %q; there are %s", name, strings.Join(names(all), ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func readFile(name string, read func(io.Reader) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(read(f), f.Close())
}

// conform runs the suites and hands on their events.
func conform(ctx context.Context, columns []column, read func(io.Reader) error, stderr io.Writer) error {
	var tests, packages []string
	for _, c := range columns {
		tests = append(tests, c.test)
		packages = append(packages, "./"+c.dir)
	}
	slices.Sort(packages)
	packages = slices.Compact(packages)
	cmd := exec.CommandContext(ctx, "go", append([]string{
		"test", "-json", "-count=1", "-timeout=60m", "-run=^(" + strings.Join(tests, "|") + ")$",
	}, packages...)...)
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := read(out)
	// That a test failed is in the events; that the command could not run is not.
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return errors.Join(readErr, ctx.Err())
}
