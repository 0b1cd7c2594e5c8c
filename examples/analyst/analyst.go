package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/cove-sandbox/cove"
)

// Analyst holds one conversation and writes down what happens in it.
type Analyst struct {
	Platform cove.Platform
	Dataset  string
	Out      io.Writer

	thread string // "" before the first answer
}

// Ask sends a message and writes the answer as it comes, then what it rests on: the
// query, its rows, and what was refused on the way. What the model writes and what is
// in the data is made harmless for a terminal.
func (a *Analyst) Ask(ctx context.Context, message string) error {
	say := func(format string, args ...any) {
		_, _ = fmt.Fprintf(a.Out, format, args...)
	}
	say("> %s\n", plain(message))
	answer, err := a.Platform.Chats().Send(ctx, cove.ChatRequest{
		Thread: a.thread, Message: message, Dataset: a.Dataset,
		OnEvent: func(e cove.ChatEvent) {
			switch e.Kind {
			case cove.ChatToken:
				say("%s", plain(e.Text))
			case cove.ChatTool:
				say("  %s %s\n", plain(e.Tool), plain(e.Text))
			case cove.ChatBlocked:
				say("  blocked: %s\n", plain(e.Error.Message))
			case cove.ChatRun: // the last one is in the answer
			}
		},
	})
	if err != nil {
		return err
	}
	a.thread = answer.Thread
	say("\n")
	if answer.Result != nil && answer.Result.State == cove.RunSucceeded {
		say("  %s: %s\n", answer.Type, plain(answer.Query))
		return table(a.Out, answer.Result.Answer)
	}
	return nil
}

// table writes rows below the names of their columns.
func table(out io.Writer, a *cove.RunAnswer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(cells []string) { _, _ = fmt.Fprintln(w, "  "+strings.Join(cells, "\t")) }
	line(clean(a.Columns))
	for _, row := range a.Rows {
		var cells []json.RawMessage
		if err := json.Unmarshal(row, &cells); err != nil {
			return fmt.Errorf("a row: %w", err)
		}
		texts := make([]string, 0, len(cells))
		for _, c := range cells {
			texts = append(texts, cell(c))
		}
		line(clean(texts))
	}
	return w.Flush()
}

// cell is a value as people read it: a text without its quotes, all else as it is.
func cell(value json.RawMessage) string {
	var text string
	if err := json.Unmarshal(value, &text); err == nil && len(value) > 0 && value[0] == '"' {
		return text
	}
	return string(value)
}

func clean(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = strings.Join(strings.Fields(plain(t)), " ")
	}
	return out
}

// plain takes out what a terminal would obey.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, text)
}
