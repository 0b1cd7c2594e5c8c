package cli

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
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

// ShowGrid shows rows in one of the forms table, csv and csv on a terminal.
func ShowGrid(w io.Writer, form string, head []string, rows []json.RawMessage) error {
	g := gridOf(head, rows)
	if form == "table" {
		return g.table(w)
	}
	return g.csv(w, form != "csv")
}

func RunError(e *cove.RunError) string { return runError(e) }

func CutNote(r *cove.Run) string { return cutNote(r) }

func ShowDecision(w io.Writer, d *cove.RunDecision) error {
	return (&app{sys: System{Stdout: w}}).showDecision(d)
}

func ShowChat(out, notes io.Writer, c *cove.ChatAnswer, fresh bool) error {
	return (&app{sys: System{Stdout: out, Stderr: notes}}).showChat(c, fresh)
}

func SaveImages(dir string, values []cove.Rich) (map[int][]string, error) {
	return saveImages(dir, values)
}

// BuildProgress returns what a terminal gets of the progress of a build.
func BuildProgress(w io.Writer, steps []daemon.TemplateProgress) {
	p := &progressLine{w: w}
	for _, s := range steps {
		p.show(s)
	}
	p.clear()
}

// Verified returns what is said of a template that was looked at.
func Verified(t wire.Template) string {
	var b strings.Builder
	_ = (&app{}).showVerified(&b, t)
	return b.String()
}

// Drained waits for a node as cove node drain --wait does.
func Drained(ctx context.Context, sys System, all cove.Nodes, n *cove.Node, patience time.Duration) (*cove.Node, error) {
	return (&app{sys: sys}).drained(ctx, all, n, patience)
}
