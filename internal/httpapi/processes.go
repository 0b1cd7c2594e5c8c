package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"strconv"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

const processesPath = "/api/sandboxes/{id}/processes"

func processRoutes() []route {
	const one = processesPath + "/{pid}"
	return []route{
		{method: http.MethodGet, pattern: processesPath, summary: "List background programs, ended ones included", deed: get((*call).listProcesses), query: pageParams},
		{method: http.MethodPost, pattern: processesPath, needs: []cove.Verb{cove.ProcessStart}, summary: "Start a program in the background", limit: commandLimit, headers: []header{onceHeader}, deed: deed{
			body: reflect.TypeFor[wire.ExecRequest](), answer: reflect.TypeFor[wire.Process](), status: http.StatusCreated, do: (*call).start,
		}, also: []other{{http.StatusOK, reflect.TypeFor[wire.Process](), "policy did not let it begin"}}},
		{
			method: http.MethodGet, pattern: one, summary: "Follow the output of a background program to its end", events: "stdout, stderr, exit",
			deed:  deed{status: http.StatusOK, do: (*call).connect},
			query: []param{{name: "offset", kind: number, doc: "bytes to leave out; Last-Event-ID wins"}}, headers: []header{lastHeader},
		},
		{method: http.MethodGet, pattern: one + "/wait", summary: "Wait for the end of a background program", deed: get((*call).wait)},
		{method: http.MethodPost, pattern: one + "/input", needs: []cove.Verb{cove.ProcessInput}, summary: "Write to a program's standard input", limit: commandLimit, deed: actOn((*call).input)},
		{method: http.MethodPost, pattern: one + "/signal", needs: []cove.Verb{cove.ProcessSignal}, summary: "Send a signal to a program", deed: actOn((*call).signal)},
		{method: http.MethodPost, pattern: one + "/resize", needs: []cove.Verb{cove.ProcessResize}, summary: "Resize a program's terminal", deed: actOn((*call).resize)},
		{
			method: http.MethodGet, pattern: "/api/sandboxes/{id}/output/{output}", summary: "Read a part of what a program wrote", deed: get((*call).output),
			query: []param{
				{name: "stream", kind: word, doc: "stdout or stderr; left out, both in the order written"},
				{name: "offset", kind: number, doc: "in bytes"},
				{name: "limit", kind: number, doc: "in bytes; left out, 64 KiB"},
				{name: "grep", kind: word, doc: "a regular expression: only lines that match"},
			},
		},
	}
}

func (c *call) listProcesses() (wire.Page[wire.Process], error) {
	return pageBySkip(c, c.processes().List(c.r.Context()), wire.ProcessOf)
}

func (c *call) start() error {
	w, err := decode[wire.ExecRequest](c)
	if err != nil {
		return err
	}
	return c.startProcess(w, http.StatusCreated)
}

// startProcess answers with a status, or with 200 where nothing was started.
func (c *call) startProcess(w wire.ExecRequest, status int) error {
	req, err := w.Cove()
	if err != nil {
		return err
	}
	req.IdempotencyKey = c.idempotencyKey()
	p, err := c.processes().Start(c.r.Context(), req)
	if err != nil {
		return err
	}
	if p.Result != nil && p.Result.Outcome == cove.Blocked {
		status = http.StatusOK
	}
	return c.send(status, wire.ProcessOf(*p))
}

func (c *call) connect() error {
	pid, err := c.pid()
	if err != nil {
		return err
	}
	offset := c.query.number("offset")
	if last := c.r.Header.Get(lastHeader.name); last != "" {
		if offset, err = strconv.ParseInt(last, 10, 64); err != nil || offset < 0 {
			return cove.InvalidField("Last-Event-ID", "%.40q is not an offset", last)
		}
	}
	return c.stream(func(ctx context.Context, e *events) error {
		for chunk, err := range c.processes().Connect(ctx, pid, offset) {
			if err != nil {
				return err
			}
			e.chunk(chunk)
		}
		x, err := c.processes().Wait(ctx, pid)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			// The output is whole, which is what was asked for.
			return e.send(wire.OnEnd, "", struct{}{})
		}
		return e.send(wire.OnExit, "", wire.ExecutionOf(x))
	})
}

func (c *call) wait() (wire.Execution, error) {
	pid, err := c.pid()
	if err != nil {
		return wire.Execution{}, err
	}
	x, err := c.processes().Wait(c.r.Context(), pid)
	if err != nil {
		return wire.Execution{}, err
	}
	return wire.ExecutionOf(x), nil
}

func (c *call) input(w wire.InputRequest) error {
	pid, err := c.pid()
	if err != nil {
		return err
	}
	return c.processes().Input(c.r.Context(), pid, w.Bytes(), w.EOF)
}

func (c *call) signal(w wire.SignalRequest) error {
	pid, err := c.pid()
	if err != nil {
		return err
	}
	sig, err := cove.ParseSignal(w.Signal)
	if err != nil {
		return err
	}
	return c.processes().Signal(c.r.Context(), pid, sig)
}

func (c *call) resize(w cove.WindowSize) error {
	pid, err := c.pid()
	if err != nil {
		return err
	}
	return c.processes().Resize(c.r.Context(), pid, w)
}

func (c *call) output() (wire.OutputPage, error) {
	stream := cove.Stream(c.query.text("stream"))
	if stream != "" && stream != cove.Stdout && stream != cove.Stderr {
		return wire.OutputPage{}, cove.InvalidField("stream", "%.40q is unknown; use stdout or stderr", string(stream))
	}
	p, err := c.processes().Output(c.r.Context(), cove.OutputID(c.r.PathValue("output")), cove.OutputRange{
		Stream: stream, Offset: c.query.number("offset"), Limit: c.query.number("limit"), Grep: c.query.text("grep"),
	})
	if err != nil {
		return wire.OutputPage{}, err
	}
	return wire.OutputPageOf(p), nil
}
