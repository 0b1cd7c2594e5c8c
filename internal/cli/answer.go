//go:build !lean

package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// answer asks a question, or what policy makes of it, and shows what comes.
func (a *app) answer(ctx context.Context, p cove.Platform, f *dataFlags, req cove.RunRequest) error {
	if f.explain {
		d, err := p.Runs().Analyze(ctx, req)
		if err != nil {
			return err
		}
		return a.showDecision(d)
	}
	run, err := p.Runs().Submit(ctx, req)
	if err != nil {
		return err
	}
	done, err := p.Runs().Wait(ctx, run.ID)
	if err != nil {
		endRun(ctx, p, run.ID)
		return err
	}
	if a.json {
		if err := a.printJSON(wire.RunOf(done)); err != nil {
			return err
		}
		return runEnd(done)
	}
	if err := a.showRun(done, f.csv); err != nil {
		return err
	}
	if done.Answer.Instead != "" {
		a.note(fmt.Sprintf("served by %s, because %s is not ready", done.Answer.Provider, done.Answer.Instead))
	}
	if e := done.Answer.Error; e != nil {
		a.note(runError(e))
	}
	return runEnd(done)
}

// endRun ends a run that nobody waits for any more.
func endRun(ctx context.Context, p cove.Platform, id cove.ID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
	defer cancel()
	_ = p.Runs().Delete(ctx, id) // its own timeout ends it otherwise
}

// runEnd is the exit code of a run, as an error.
func runEnd(r *cove.Run) error {
	e := r.Answer.Error
	switch {
	case e == nil:
		return nil
	case r.Answer.Status == "timeout":
		return exitError{exitTimeout}
	case e.Type == cove.RunUnavailable || e.Type == cove.RunInternalError:
		return exitError{exitPlatform}
	}
	return exitError{exitProblem}
}

// runError is the sentence about why a run failed.
func runError(e *cove.RunError) string {
	text := e.Message
	if r := e.Refusal; r != nil {
		text = "blocked: " + text
		if r.Line > 0 && !strings.Contains(text, "line ") {
			text += fmt.Sprintf(" (line %d, column %d)", r.Line, r.Column)
		}
		if !strings.Contains(text, r.Rule) {
			text += "; rule " + r.Rule
		}
	}
	return text + " [" + e.Type + "]"
}

// showRun shows what a run printed, and its rows. Beside CSV what it printed is
// beside the answer.
func (a *app) showRun(r *cove.Run, csv bool) error {
	out := a.sys.Stdout
	if csv {
		out = a.sys.Stderr
	}
	for _, said := range []struct {
		to   io.Writer
		text string
	}{{out, r.Answer.Stdout}, {a.sys.Stderr, r.Answer.Stderr}} {
		if said.text == "" {
			continue
		}
		if _, err := io.WriteString(said.to, strings.TrimRight(said.text, "\n")+"\n"); err != nil {
			return err
		}
	}
	if r.Answer.Error != nil || len(r.Answer.Columns) == 0 {
		return nil
	}
	g := gridOf(r.Answer.Columns, r.Answer.Rows)
	if csv {
		_, tty := terminal(a.sys.Stdout)
		if err := g.csv(a.sys.Stdout, tty); err != nil {
			return err
		}
		if r.Answer.Truncated {
			a.note(cutNote(r))
		}
		return nil
	}
	if err := g.table(a.sys.Stdout); err != nil {
		return err
	}
	count := fmt.Sprintf("(%d rows)", len(r.Answer.Rows))
	switch {
	case r.Answer.Truncated:
		count = "(" + cutNote(r) + ")"
	case len(r.Answer.Rows) == 1:
		count = "(1 row)"
	}
	_, err := io.WriteString(a.sys.Stdout, count+"\n")
	return err
}

// cutNote says that there was more.
func cutNote(r *cove.Run) string {
	rows := len(r.Answer.Rows)
	switch most := r.Request.WithDefaults().MaxRows; {
	case rows < most:
		return fmt.Sprintf("%d rows, cut: the rest is longer than --max-output", rows)
	case most < cove.MaxRunRows:
		return fmt.Sprintf("%d rows, cut; --max-rows shows more", rows)
	}
	return fmt.Sprintf("%d rows, cut; that is the most", rows)
}

// showDecision shows what policy makes of a question.
func (a *app) showDecision(d *cove.RunDecision) error {
	err := a.print(wire.RunAnalysisOf(d), func(w io.Writer) error {
		var b strings.Builder
		effect := cove.Allow
		if !d.Allowed {
			effect = cove.Deny
		}
		fmt.Fprintf(&b, "%s\n", effect)
		if d.Refusal != nil {
			fmt.Fprintf(&b, "  %s\n", escape(refusal(d.Refusal)))
		}
		for _, part := range []struct {
			what string
			list []string
		}{{"tables", d.Tables}, {"columns", d.Columns}, {"imports", d.Imports}} {
			if len(part.list) > 0 {
				fmt.Fprintf(&b, "  %s: %s\n", part.what, escape(strings.Join(part.list, ", ")))
			}
		}
		_, err := io.WriteString(w, b.String())
		return err
	})
	if err == nil && !d.Allowed {
		return exitError{exitRefused}
	}
	return err
}
