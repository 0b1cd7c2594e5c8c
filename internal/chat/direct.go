package chat

import (
	"context"
	"fmt"
	"strings"

	"github.com/cove-sandbox/cove"
)

// direct reports whether a message is a query as it is, and returns that: what
// stands after SQL: or PYTHON:, in whatever case.
func direct(message string) (cove.QueryType, string, bool) {
	message = strings.TrimSpace(message)
	for _, kind := range []cove.QueryType{cove.QuerySQL, cove.QueryPython} {
		n := len(kind)
		if len(message) <= n || message[n] != ':' || !strings.EqualFold(message[:n], string(kind)) {
			continue
		}
		query := message[n+1:]
		// What begins on the next line keeps its indentation.
		if line, rest, ok := strings.Cut(query, "\n"); ok && strings.TrimSpace(line) == "" {
			return kind, rest, true
		}
		return kind, strings.TrimLeft(query, " \t"), true
	}
	return "", "", false
}

// asItIs runs a query that somebody wrote, and says how that went.
func (t *talk) asItIs(ctx context.Context, kind cove.QueryType, query string) (*cove.ChatAnswer, error) {
	req := cove.RunRequest{Type: kind, Dataset: t.req.Dataset, MaxRows: t.req.MaxRows}
	if kind == cove.QuerySQL {
		req.SQL = query
	} else {
		req.Python = query
	}
	run, fault, err := t.run(ctx, req)
	if err != nil && cove.CodeOf(err) != cove.Invalid {
		return nil, err
	}
	t.answer.Message.Error = fault
	if fault != nil {
		t.answer.Message.Text = fault.Message
	} else {
		t.answer.Message.Text = inWords(run.Answer)
	}
	t.tell(cove.ChatEvent{Kind: cove.ChatToken, Text: t.answer.Message.Text})
	return t.answer, nil
}

// inWords says what came of a run.
func inWords(a *cove.RunAnswer) string {
	rows := "rows"
	if a.RowCount == 1 {
		rows = "row"
	}
	switch {
	case a.Truncated:
		return fmt.Sprintf("The first %d %s; there is more.", a.RowCount, rows)
	case len(a.Columns) == 0 && a.Stdout != "":
		return strings.TrimRight(a.Stdout, "\n")
	case len(a.Columns) == 0:
		return "Done, without a result."
	}
	return fmt.Sprintf("%d %s.", a.RowCount, rows)
}
