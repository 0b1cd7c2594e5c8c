package dataruns

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
)

// sql and python are questions of a dataset with the usual bounds.
func sql(dataset, text string) cove.RunRequest {
	return cove.RunRequest{Type: cove.QuerySQL, Dataset: dataset, SQL: text}
}

func python(dataset, code string) cove.RunRequest {
	return cove.RunRequest{Type: cove.QueryPython, Dataset: dataset, Python: code}
}

// ask submits a question and waits for its end.
func (r *rig) ask(p cove.Platform, req cove.RunRequest) *cove.Run {
	r.Helper()
	run, err := p.Runs().Submit(r.ctx, req)
	if err != nil {
		r.Fatalf("submit %.200q: %v (%s)", req.SQL+req.Python, err, cove.RemedyOf(err))
	}
	done, err := p.Runs().Wait(r.ctx, run.ID)
	if err != nil {
		r.Fatalf("wait for %.200q: %v", req.SQL+req.Python, err)
	}
	if done.Answer == nil {
		r.Fatalf("the run of %.200q has ended without an answer: %+v", req.SQL+req.Python, done)
	}
	r.checkFields(done)
	return done
}

// checkFields wants what is true of every run that has ended.
func (r *rig) checkFields(run *cove.Run) {
	r.Helper()
	a := run.Answer
	states := map[string]cove.RunState{"success": cove.RunSucceeded, "error": cove.RunFailed, "timeout": cove.RunFailed}
	switch {
	case states[a.Status] != run.State || run.State == "":
		r.Errorf("a run with the status %q is %q", a.Status, run.State)
	case a.RowCount != len(a.Rows):
		r.Errorf("row_count is %d, and there are %d rows", a.RowCount, len(a.Rows))
	case (a.Error != nil) != (a.Status != "success"):
		r.Errorf("with the status %q the error is %+v", a.Status, a.Error)
	case a.Error != nil && (!slices.Contains(cove.RunErrorTypes(), a.Error.Type) || a.Error.Message == ""):
		r.Errorf("the error is %+v", a.Error)
	case a.Error != nil && len(a.Rows) > 0:
		r.Errorf("a failed run has %d rows", len(a.Rows))
	case a.Provider != r.s.shared.Provider():
		r.Errorf("the provider is %q, want %q", a.Provider, r.s.shared.Provider())
	case run.EndedAt.Before(run.CreatedAt) || a.Wall < 0:
		r.Errorf("it began %s, ended %s and took %s", run.CreatedAt, run.EndedAt, a.Wall)
	}
	for _, row := range a.Rows {
		var cells []json.RawMessage
		if err := json.Unmarshal(row, &cells); err != nil || len(cells) != len(a.Columns) {
			r.Errorf("row %.200s is none of %d columns: %v", row, len(a.Columns), err)
		}
	}
}

// wantRows wants a run that succeeded with these columns and rows. A row is JSON.
func (r *rig) wantRows(run *cove.Run, columns string, rows ...string) {
	r.Helper()
	a := run.Answer
	if a.Error != nil {
		r.Errorf("it failed: %s: %s\n%s", a.Error.Type, a.Error.Message, a.Stderr)
		return
	}
	if got := strings.Join(a.Columns, ","); got != columns {
		r.Errorf("the columns are %q, want %q", got, columns)
	}
	if diff := cmp.Diff(rows, texts(a.Rows)); diff != "" {
		r.Errorf("the rows (-want +got):\n%s", diff)
	}
}

// texts are rows as they are written, without space between cells.
func texts(rows []json.RawMessage) []string {
	var out []string
	for _, row := range rows {
		var b bytes.Buffer
		if json.Compact(&b, row) != nil {
			b.Write(row) // it differs from all that is wanted
		}
		out = append(out, b.String())
	}
	return out
}

// wantError wants a run that failed for a reason that the words tell.
func (r *rig) wantError(run *cove.Run, kind string, words ...string) {
	r.Helper()
	e := run.Answer.Error
	if e == nil {
		r.Errorf("it succeeded with %.200s, want %s", run.Answer.Rows, kind)
		return
	}
	if e.Type != kind {
		r.Errorf("the type is %s, want %s; it says %q", e.Type, kind, e.Message)
	}
	for _, w := range words {
		if !strings.Contains(strings.ToLower(e.Message), strings.ToLower(w)) {
			r.Errorf("it says %q and not %q", e.Message, w)
		}
	}
	if status := map[bool]string{true: "timeout", false: "error"}[kind == cove.RunTimeout]; run.Answer.Status != status {
		r.Errorf("the status is %q, want %q", run.Answer.Status, status)
	}
}

// wantRefusal wants that policy refused, with a rule and, where there is a word, its
// place in the text.
func (r *rig) wantRefusal(run *cove.Run, kind, word string) {
	r.Helper()
	r.wantError(run, kind)
	if run.Answer.Error == nil {
		return
	}
	why := run.Answer.Error.Refusal
	if why == nil || why.Rule == "" || why.Reason == "" || why.Line < 1 || why.Column < 1 {
		r.Errorf("the refusal has no rule or no place: %+v", why)
		return
	}
	if run.Decision == nil || run.Decision.Allowed || run.Decision.Refusal == nil {
		r.Errorf("the decision that is kept is %+v", run.Decision)
	}
	if word == "" {
		return
	}
	text := run.Request.SQL + run.Request.Python
	lines := strings.Split(text, "\n")
	if why.Line > len(lines) || why.Column > len(lines[why.Line-1]) ||
		!strings.HasPrefix(strings.ToLower(lines[why.Line-1][why.Column-1:]), strings.ToLower(word)) {
		r.Errorf("it is about line %d, column %d of %q, want the place of %q", why.Line, why.Column, text, word)
	}
}

func asError(err error) (*cove.Error, bool) { return errors.AsType[*cove.Error](err) }
