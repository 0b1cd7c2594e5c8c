package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/cove-sandbox/cove/internal/chat"
)

// stream reads an answer that comes as server-sent events, each with its data in one
// line. It ends with [DONE]; where a server forgets that, what has a reason to be
// finished is whole.
func (m *Model) stream(ctx context.Context, in io.Reader, on func(string)) (*chat.Reply, error) {
	g := gathered{on: on}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if !ok {
			continue // a comment, or a field that says nothing here
		}
		data = bytes.TrimSpace(data)
		if bytes.Equal(data, []byte("[DONE]")) {
			g.finished = true
			break
		}
		var a answer
		if err := json.Unmarshal(data, &a); err != nil {
			said := bytes.Clone(data[:min(len(data), maxSaid)])
			if !lines.Scan() {
				break // it was a part of a line
			}
			return nil, m.stranger(http.StatusOK, said)
		}
		if err := g.take(a); err != nil {
			return nil, m.midway(err)
		}
	}
	switch err := lines.Err(); {
	case g.finished:
		return g.reply(), nil
	case err != nil:
		return nil, m.broken(ctx, err)
	}
	return nil, m.broken(ctx, io.ErrUnexpectedEOF)
}

// gathered is what was said so far.
type gathered struct {
	on       func(string)
	text     strings.Builder
	calls    []chat.Call
	at       map[int]int // from the index of a call to its place in calls
	end      chat.End
	began    bool // something was said
	finished bool // and that was all of it
}

var errManyCalls = fmt.Errorf("more than %d calls in one reply", maxCalls)

// take adds an answer in one piece, or one event.
func (g *gathered) take(a answer) error {
	if len(a.Error) > 0 && !bytes.Equal(bytes.TrimSpace(a.Error), []byte("null")) {
		return saidError(a.Error)
	}
	for _, c := range a.Choices {
		if c.Index != 0 {
			continue // one was asked for
		}
		g.began = true
		g.say(string(c.Message.Content + c.Message.Refusal + c.Delta.Content + c.Delta.Refusal))
		for _, one := range c.Message.ToolCalls {
			if err := g.call(one); err != nil {
				return err
			}
		}
		for _, one := range c.Delta.ToolCalls {
			if err := g.piece(one); err != nil {
				return err
			}
		}
		g.ended(c.Finish)
	}
	return nil
}

// ended takes down why it ended, if it did.
func (g *gathered) ended(finish string) {
	switch finish {
	case "":
		return
	case "length":
		g.end = chat.EndLength
	case "content_filter":
		g.end = chat.EndFiltered
	}
	g.finished = true
}

func (g *gathered) say(text string) {
	if text == "" {
		return
	}
	g.text.WriteString(text)
	if g.on != nil {
		g.on(text)
	}
}

// piece adds a piece of a call. Pieces belong together by their index; some servers
// leave it out, and others have the same for all calls, which differ by id.
func (g *gathered) piece(c call) error {
	at, known := len(g.calls)-1, len(g.calls) > 0 && c.Function.Name == ""
	if c.Index != nil {
		at, known = g.at[*c.Index]
	}
	if known && (c.ID == "" || g.calls[at].ID == c.ID) {
		g.calls[at].Name += c.Function.Name
		g.calls[at].Arguments += string(c.Function.Arguments)
		return nil
	}
	if c.Index != nil {
		if g.at == nil {
			g.at = map[int]int{}
		}
		g.at[*c.Index] = len(g.calls)
	}
	return g.call(c)
}

// call adds a call.
func (g *gathered) call(c call) error {
	if len(g.calls) == maxCalls {
		return errManyCalls
	}
	g.calls = append(g.calls, chat.Call{ID: c.ID, Name: c.Function.Name, Arguments: string(c.Function.Arguments)})
	return nil
}

func (g *gathered) reply() *chat.Reply {
	return &chat.Reply{Text: g.text.String(), Calls: g.calls, End: g.end}
}

// saidError is what an endpoint says about a fault after it began to answer.
type saidError []byte

func (e saidError) Error() string { return string(e) }

// isSaid returns what an endpoint said, if that is what an error is.
func isSaid(err error) ([]byte, bool) {
	said, ok := errors.AsType[saidError](err)
	return said[:min(len(said), maxSaid)], ok
}
