package msbapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/intake"
)

// maxBody bounds a request.
const maxBody = 4 << 20

// version is that of JSON-RPC.
const version = "2.0"

// call is one request.
type call struct {
	*server

	w        http.ResponseWriter
	r        *http.Request
	control  *http.ResponseController
	ctx      context.Context //nolint:containedctx // a call is one request
	status   int
	whole    bool // the body has been read to its end
	method   string
	id       json.RawMessage
	who      cove.Principal
	platform cove.Platform
}

// request is the envelope of a question.
type request struct {
	Version string          `json:"jsonrpc"`
	Method  string          `json:"method"`
	ID      json.RawMessage `json:"id"`
	Params  json.RawMessage `json:"params"`
}

// methods are what can be asked.
var methods = map[string]func(*call, params) (any, error){
	"sandbox.start":       (*call).start,
	"sandbox.stop":        (*call).stop,
	"sandbox.command.run": (*call).run,
	"sandbox.repl.run":    (*call).repl,
	"sandbox.metrics.get": (*call).metrics,
}

// serve answers one question.
func (c *call) serve() error {
	done, err := c.identify()
	if err != nil {
		return err
	}
	defer done()
	// Each method opens a session or looks for one.
	if err := c.Authorize(c.ctx, c.who, "", cove.SessionOpen, cove.SessionList); err != nil {
		return err
	}
	memory := c.Bodies.Body(c.who)
	defer memory.Free()
	req, err := c.read(memory)
	if err != nil {
		return err
	}
	if c.id = req.ID; len(c.id) == 0 {
		c.id = json.RawMessage("null")
	}
	if req.Version != version {
		return &failure{status: http.StatusBadRequest, code: codeNoRequest, text: "Invalid or missing jsonrpc version field"}
	}
	do, ok := methods[req.Method]
	if !ok {
		return &failure{status: http.StatusNotFound, code: codeNoMethod, text: "Method not found: " + shortened(req.Method)}
	}
	c.method = req.Method
	p, err := parse(req.Method, req.Params)
	if err != nil {
		return err
	}
	if err := enters(c.who, p.Namespace); err != nil {
		return err
	}
	result, err := do(c, p)
	if err != nil {
		return err
	}
	c.answer(result)
	return nil
}

// shortened is a word of a caller's as it may come back to it.
func shortened(word string) string {
	const most = 100
	if len(word) > most {
		word = word[:most] + "…"
	}
	return word
}

// read takes the envelope in.
func (c *call) read(memory *intake.Body) (req request, err error) {
	body, err := memory.ReadAll(c.ctx, c.r.Body, c.r.ContentLength, maxBody)
	c.whole = err == nil
	_ = c.control.SetReadDeadline(time.Time{}) // or a long answer would look like a client that has left
	if cove.ReasonOf(err) == intake.ReasonTooLarge {
		return req, &failure{status: http.StatusRequestEntityTooLarge, code: codeParams, text: "the request is longer than 4 MiB"}
	}
	if errors.Is(err, cove.Exhausted) {
		return req, err
	}
	if err != nil {
		return req, &failure{status: http.StatusBadRequest, code: codeNoJSON, text: "the request broke off", cause: err}
	}
	if err := intake.CheckJSON(body); err != nil {
		return req, wrong(words(err))
	}
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] != '{' && json.Valid(body) {
		return req, &failure{status: http.StatusBadRequest, code: codeNoRequest, text: "one request at a time, as a JSON object"}
	}
	if err := json.Unmarshal(body, &req); err != nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return req, &failure{status: http.StatusBadRequest, code: codeNoRequest, text: "jsonrpc and method must be strings"}
		}
		return req, &failure{status: http.StatusBadRequest, code: codeNoJSON, text: "the request is not JSON"}
	}
	return req, nil
}

// answer sends a result in the envelope.
func (c *call) answer(result any) {
	c.send(http.StatusOK, struct {
		Version string          `json:"jsonrpc"`
		Result  any             `json:"result"`
		ID      json.RawMessage `json:"id"`
	}{version, result, c.id})
}

// send writes an answer. A client that does not take it is left.
func (c *call) send(status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"Internal server error","code":5002}`)
	}
	_ = c.control.SetWriteDeadline(time.Now().Add(c.Stall)) // writers of tests have none
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	c.status = status
	c.w.WriteHeader(status)
	_, _ = c.w.Write(body) // it may be gone
}
