package cli

import (
	"io"
	"iter"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/measure"
	"github.com/cove-sandbox/cove/internal/wire"
)

// What tests need beside the exported names.

// CommandPaths returns the words of every command that is not hidden.
func CommandPaths() [][]string {
	var all [][]string
	var walk func(c *cobra.Command, path []string)
	walk = func(c *cobra.Command, path []string) {
		all = append(all, path)
		for _, sub := range c.Commands() {
			if !sub.Hidden {
				walk(sub, append(append([]string{}, path...), sub.Name()))
			}
		}
	}
	walk((&app{}).root(nil), nil)
	return all
}

func Escape(text string) string { return escape(text) }

func Table(w io.Writer, head []string, rows [][]string) error { return table(w, head, rows) }

func ExitCode(err error) int { return exitCode(err) }

func HasExitCode(c cove.Code) bool { _, ok := exitCodes[c]; return ok }

func Complain(w io.Writer, err error) { complain(w, err) }

func PlatformError(err error) error { return platformError{err} }

func ShowBench(w io.Writer, r measure.Report) error { return showBench(w, r) }

func Coarse(d time.Duration) string { return coarse(d) }

// Typed passes keys through a detacher, piece by piece.
func Typed(pieces ...string) (passed string, left bool) {
	var d detacher
	for _, p := range pieces {
		pass, gone := d.scan([]byte(p))
		passed += string(pass)
		if gone {
			return passed, true
		}
	}
	return passed, false
}

// Merged merges journals, each given as the times of its lines in seconds; a
// negative time is an error.
func Merged(journals [][]int) (times []int, err error) {
	var all []iter.Seq2[line, error]
	for _, j := range journals {
		all = append(all, func(yield func(line, error) bool) {
			for _, n := range j {
				var err error
				if n < 0 {
					err = io.ErrUnexpectedEOF
				}
				if !yield(line{Event: wire.Event{Time: time.Unix(int64(n), 0)}}, err) {
					return
				}
			}
		})
	}
	for l, err := range merged(all) {
		if err != nil {
			return times, err
		}
		times = append(times, int(l.Time.Unix()))
	}
	return times, nil
}

// Unpack extracts a tar into dir as cp does; notes go to w.
func Unpack(dir string, r io.Reader, w io.Writer) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return (&app{sys: System{Stderr: w}}).unpack(root, r)
}

// CommandNames returns what each command is known by before it is made, and
// its own name.
func CommandNames() map[string]string {
	names := map[string]string{}
	for _, c := range (&app{}).commands() {
		names[c.name] = c.make().Name()
	}
	return names
}

func ShowLoad(w io.Writer, server string, found []measure.Scenario) error {
	return showLoad(w, loadReport{Server: server, Scenarios: found})
}
