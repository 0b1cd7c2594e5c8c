package clustertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove/internal/clustertest/history"
)

// memory is what each session is promised.
const memory = 64 << 20

// maxAnswer is more than any answer of these tests has.
const maxAnswer = 1 << 20

// question is what is asked for an event.
type question struct {
	method string
	path   string
	body   any // nil, bytes as they are, or what is sent as JSON
}

// do does what e says, and writes it down with what came of it.
func (r *Rig) do(ctx context.Context, w *history.Writer, e *history.Event, n *node, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	e.Node = n.name
	w.Call(e)
	defer w.Return(e)
	a, err := r.answer(ctx, n, e)
	if err != nil {
		dial, ok := errors.AsType[*net.OpError](err)
		e.Unsent, e.Error = ok && dial.Op == "dial", err.Error()
		return
	}
	e.Status, e.Again = a.status, a.again
	if !e.Done() {
		refused(e, a.body)
		return
	}
	if err := understand(e, a.body); err != nil {
		e.Error = err.Error()
	}
}

// answer asks what e says. A context that is not there yet is opened first, and where
// the programs are asked for, the output of the one that is meant is the answer's end.
func (r *Rig) answer(ctx context.Context, n *node, e *history.Event) (answer, error) {
	a, err := r.send(ctx, n, questionOf(e))
	switch {
	case err != nil:
	case e.Op == history.Set && a.missing():
		spec := map[string]any{"id": e.Context, "language": "python"}
		if a, err = r.send(ctx, n, question{http.MethodPost, "/api/sandboxes/" + e.Session + "/contexts", spec}); err != nil || a.status != http.StatusCreated {
			return a, err
		}
		return r.send(ctx, n, questionOf(e))
	case e.Op == history.Look && a.status == http.StatusOK:
		output := programIn(e, a.body)
		if e.Absent {
			return a, nil
		}
		return r.send(ctx, n, question{http.MethodGet, "/api/sandboxes/" + e.Session + "/output/" + output, nil})
	}
	return a, err
}

// questionOf is the request for an event.
func questionOf(e *history.Event) question {
	one := "/api/sandboxes/" + url.PathEscape(e.Session)
	file := one + "/files?path=" + url.QueryEscape(e.File)
	switch e.Op { //nolint:exhaustive // the others are no requests
	case history.Open:
		spec := map[string]any{"memory_limit": strconv.Itoa(memory), "workspace": map[string]any{"size_mb": 16}}
		if user, thread, ok := strings.Cut(e.Key, "/"); ok {
			spec["user_id"], spec["thread_id"] = user, thread
		}
		return question{http.MethodPost, "/api/sandboxes", spec}
	case history.Write:
		return question{http.MethodPut, file, contentOf(e.Value)}
	case history.Read:
		return question{http.MethodGet, file, nil}
	case history.Exec:
		return question{http.MethodPost, one + "/execute", map[string]any{"command": tokenThen(e.File), "timeout": 8}}
	case history.List:
		return question{http.MethodGet, one + "/files/list?limit=1000", nil}
	case history.Close:
		return question{http.MethodDelete, one, nil}
	case history.Stop, history.Start:
		return question{http.MethodPost, one + "/" + string(e.Op), map[string]any{}}
	case history.Replace:
		// The input is more than a pipe holds, and the program begins to read after a while.
		line := fmt.Sprintf("sleep 0.2; cat >%[1]s.new && mv %[1]s.new %[1]s", e.File)
		return question{http.MethodPost, one + "/execute", map[string]any{"command": line, "stdin": string(contentOf(e.Value)), "timeout": 8}}
	case history.Append:
		return question{http.MethodPost, one + "/execute", map[string]any{"command": "echo " + e.Value + " >>" + e.File, "timeout": 8}}
	case history.Tally:
		return question{http.MethodGet, file, nil}
	case history.Set:
		return code(one, e, fmt.Sprintf("x = %q", e.Value))
	case history.Recall:
		return code(one, e, `print(globals().get("x", ""))`)
	case history.Begin:
		return question{http.MethodPost, one + "/processes", map[string]any{"command": "echo " + e.Value + "; exec sleep 100000", "background": true}}
	case history.Look:
		return question{http.MethodGet, one + "/processes?limit=1000", nil}
	}
	return question{http.MethodGet, one, nil}
}

func code(one string, e *history.Event, text string) question {
	return question{http.MethodPost, one + "/code", map[string]any{"language": "python", "context_id": e.Context, "code": text, "timeout": 8}}
}

// tokenThen is a line for the shell that prints what only this sandbox has, and then
// a file. The token is made by whoever comes first, and outside of the workspace,
// so that no copy of the files has it.
func tokenThen(file string) string {
	const token = `cat /proc/sys/kernel/random/uuid >/tmp/new.$$ && { ln /tmp/new.$$ /tmp/token 2>/dev/null; rm /tmp/new.$$; cat /tmp/token; } || exit 90; `
	if file == "" {
		return token
	}
	return token + "[ -e " + file + " ] || exit 44; cat " + file
}

// missing is the exit code where there is no such file.
const missing = 44

// answer is what came back.
type answer struct {
	status int
	body   []byte
	again  bool // it says after which time to ask again
}

// missing reports whether the session is there and what was asked for in it is not.
func (a answer) missing() bool {
	var p problem
	return a.status == http.StatusNotFound && json.Unmarshal(a.body, &p) == nil && p.Reason == ""
}

func (r *Rig) send(ctx context.Context, n *node, q question) (a answer, err error) {
	var body io.Reader = http.NoBody
	kind := ""
	switch content := q.body.(type) {
	case nil:
	case []byte:
		body = bytes.NewReader(content)
	default:
		text, err := json.Marshal(content)
		if err != nil {
			return a, err
		}
		body, kind = bytes.NewReader(text), "application/json"
	}
	req, err := http.NewRequestWithContext(ctx, q.method, n.base()+q.path, body)
	if err != nil {
		return a, err
	}
	req.Header.Set("Authorization", "Bearer "+n.admin)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	res, err := r.ask.Do(req)
	if err != nil {
		return a, err
	}
	defer func() { _ = res.Body.Close() }() // it was read
	a.status, a.again = res.StatusCode, res.Header.Get("Retry-After") != ""
	a.body, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	return a, err
}

// problem is an answer that is no success.
type problem struct {
	Code   string `json:"code"`
	Reason string `json:"reason"`
	Error  string `json:"error"`
}

func refused(e *history.Event, body []byte) {
	var p problem
	if err := json.Unmarshal(body, &p); err != nil {
		e.Error = fmt.Sprintf("%.200q", body)
		return
	}
	e.Code, e.Reason, e.Error = p.Code, p.Reason, p.Error
	within := e.Op == history.Read || e.Op == history.Tally || e.Op == history.Recall
	e.Absent = within && e.Status == http.StatusNotFound && p.Reason == ""
}

// understand reads a success.
func understand(e *history.Event, body []byte) error {
	switch e.Op { //nolint:exhaustive // the others have nothing to read
	case history.Open, history.Get:
		return session(e, body)
	case history.Read:
		e.Value = valueIn(body)
	case history.Exec:
		return execution(e, body)
	case history.List:
		return listing(e, body)
	case history.Replace, history.Append:
		return ended(e, body)
	case history.Tally:
		e.Files = strings.Fields(string(body))
	case history.Set, history.Recall:
		return ofCode(e, body)
	case history.Begin:
		return begun(e, body)
	case history.Look:
		return output(e, body)
	}
	return nil
}

func session(e *history.Event, body []byte) error {
	var s struct {
		ID      string `json:"session_id"`
		Node    string `json:"node_id"`
		Created bool   `json:"created"`
		State   string `json:"status"`
	}
	if err := json.Unmarshal(body, &s); err != nil {
		return err
	}
	if e.Op == history.Open {
		e.Session, e.Created = s.ID, s.Created
	}
	e.Home, e.State = s.Node, s.State
	other(e, s.ID)
	return nil
}

// other writes down that a session answered that was not asked.
func other(e *history.Event, id string) {
	if id != e.Session {
		e.Other = id
	}
}

func execution(e *history.Event, body []byte) error {
	var x struct {
		ID      string `json:"session_id"`
		Exit    int    `json:"exit_code"`
		Outcome string `json:"outcome"`
		Stdout  string `json:"stdout"`
		Stderr  string `json:"stderr"`
	}
	if err := json.Unmarshal(body, &x); err != nil {
		return err
	}
	other(e, x.ID)
	token, text, _ := strings.Cut(x.Stdout, "\n")
	switch {
	case x.Outcome == "exited" && x.Exit == missing && e.File != "":
		e.Token, e.Absent = token, true
	case x.Outcome == "exited" && x.Exit == 0:
		e.Token = token
		if e.File != "" {
			e.Value = valueIn([]byte(text))
		}
	default:
		e.File = "" // it was not read
		return fmt.Errorf("the program: %s, exit code %d: %.200q", x.Outcome, x.Exit, x.Stderr)
	}
	if token == "" {
		return errors.New("the program does not tell its sandbox")
	}
	return nil
}

func listing(e *history.Event, body []byte) error {
	var page struct {
		Items []struct {
			Path string `json:"path"`
		} `json:"items"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return err
	}
	e.Files = []string{}
	for _, f := range page.Items {
		e.Files = append(e.Files, path.Base(f.Path))
	}
	return nil
}

// contentOf is what is in a file whose first line is value: so much more that one
// sees where a part is missing or another's. The value ends in how much.
func contentOf(value string) []byte {
	pad, _ := strconv.Atoi(value[strings.LastIndex(value, "=")+1:])
	return []byte(value + "\n" + strings.Repeat(value, pad/len(value)+1)[:pad])
}

// valueIn is the value in a file's content, or one that nobody writes.
func valueIn(body []byte) string {
	value, _, _ := strings.Cut(string(body), "\n")
	if value != "" && strings.Contains(value, "=") && bytes.Equal(contentOf(value), body) {
		return value
	}
	return fmt.Sprintf("torn: %.120q of %d bytes", body, len(body))
}
