package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// shell is what a terminal runs where nothing else is asked for.
const shell = "if command -v bash >/dev/null; then exec bash -i; else exec sh -i; fi"

// maxMessage bounds one message from the client: a large paste.
const maxMessage = 1 << 20

// terminalNote is a text message on a terminal, in either direction.
type terminalNote struct {
	Type   string          `json:"type"` // resize from the client; exit or error from the server
	Cols   uint16          `json:"cols,omitempty"`
	Rows   uint16          `json:"rows,omitempty"`
	Result *wire.Execution `json:"result,omitempty"`
	Error  *wire.Problem   `json:"error,omitempty"`
}

func (c *call) terminal() error {
	if !c.upgrades("websocket") {
		return cove.Errorf(cove.Invalid, "this route speaks WebSocket: open it with a WebSocket client")
	}
	req := cove.ExecRequest{Line: shell, KeepStdin: true, TTY: &cove.WindowSize{Cols: 80, Rows: 24}}
	if line := c.query.text("command"); line != "" {
		req.Line = line
	}
	if n := c.query.number("cols"); n > 0 {
		req.TTY.Cols = uint16(n) //nolint:gosec // bounded by its parameter
	}
	if n := c.query.number("rows"); n > 0 {
		req.TTY.Rows = uint16(n) //nolint:gosec // bounded by its parameter
	}
	p, err := c.processes().Start(c.r.Context(), req)
	if cove.ReasonOf(err) == cove.ReasonCommandPolicy {
		return c.refusedTerminal(err)
	}
	if err != nil {
		return err
	}
	// The terminal is its client's: it must not stay behind, whatever happens.
	defer c.hangUp(p.PID)
	conn, err := websocket.Accept(c.w, c.r, nil)
	if err != nil {
		return nil // Accept has answered
	}
	defer conn.CloseNow() //nolint:errcheck // closed already where all went well
	conn.SetReadLimit(maxMessage)
	ctx, cancel := context.WithCancel(c.r.Context())
	line, drop := c.line()
	var parts sync.WaitGroup
	parts.Go(func() { defer cancel(); c.typed(ctx, line, conn, p.PID) })
	parts.Go(func() { defer cancel(); c.ping(line, conn) })
	c.shown(ctx, line, conn, p.PID)
	cancel()
	drop()
	parts.Wait()
	return nil
}

// refusedTerminal tells the client that the command policy refuses the terminal. It does so
// in a message: a browser shows a page nothing of an answer that is not a WebSocket.
func (c *call) refusedTerminal(refused error) error {
	conn, err := websocket.Accept(c.w, c.r, nil)
	if err != nil {
		return nil // Accept has answered
	}
	defer conn.CloseNow() //nolint:errcheck // closed already where all went well
	c.lastNote(c.r.Context(), conn, terminalNote{Type: "error", Error: new(problemOf(c.blame(refused), c.id))})
	return nil
}

// line is the context of what goes over the wire. It outlives the request for a
// moment, in which a client can be told why the request had to end: a connection
// is closed as soon as the context of a message ends.
func (c *call) line() (_ context.Context, drop func()) {
	line, cut := context.WithCancel(context.WithoutCancel(c.r.Context()))
	stop := context.AfterFunc(c.r.Context(), func() {
		late := time.NewTimer(c.api.HangUp)
		defer late.Stop()
		select {
		case <-line.Done():
		case <-late.C:
			cut()
		}
	})
	return line, func() { stop(); cut() }
}

// shown sends what the program writes, and how it ended.
func (c *call) shown(ctx, line context.Context, conn *websocket.Conn, pid cove.PID) {
	for chunk, err := range c.processes().Connect(ctx, pid, 0) {
		if err != nil {
			c.noteError(ctx, line, conn, err)
			return
		}
		if c.message(line, conn, websocket.MessageBinary, chunk.Data) != nil {
			return
		}
	}
	x, err := c.processes().Wait(ctx, pid)
	if err != nil {
		c.noteError(ctx, line, conn, err)
		return
	}
	c.lastNote(line, conn, terminalNote{Type: "exit", Result: new(wire.ExecutionOf(x))})
}

// noteError tells the client what went wrong, unless it is the client or the server
// that left.
func (c *call) noteError(ctx, line context.Context, conn *websocket.Conn, err error) {
	if ctx.Err() != nil && cutOff(ctx) == nil {
		return
	}
	c.lastNote(line, conn, terminalNote{Type: "error", Error: new(problemOf(c.blame(err), c.id))})
}

// message gives the client the time of a stall to take one message.
func (c *call) message(ctx context.Context, conn *websocket.Conn, kind websocket.MessageType, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, c.api.Stall)
	defer cancel()
	return conn.Write(ctx, kind, data)
}

func (c *call) lastNote(ctx context.Context, conn *websocket.Conn, note terminalNote) {
	data, err := json.Marshal(note)
	if err == nil && c.message(ctx, conn, websocket.MessageText, data) == nil {
		_ = conn.Close(websocket.StatusNormalClosure, "")
	}
}

// typed hands on what the client sends, until it sends nothing more or
// something that has no meaning here.
func (c *call) typed(ctx, line context.Context, conn *websocket.Conn, pid cove.PID) {
	for c.typedMessage(ctx, line, conn, pid) {
	}
}

// typedMessage hands on one message, and reports whether there may be another.
func (c *call) typedMessage(ctx, line context.Context, conn *websocket.Conn, pid cove.PID) (more bool) {
	kind, r, err := conn.Reader(line)
	if err != nil {
		return false
	}
	body := c.api.Bodies.Body(c.who)
	defer body.Free()
	data, err := body.ReadAll(line, r, -1, maxMessage+1) // the connection has the bound itself
	if errors.Is(err, cove.Exhausted) {
		c.noteError(ctx, line, conn, err)
	}
	if err != nil {
		return false
	}
	if kind == websocket.MessageBinary {
		return c.processes().Input(ctx, pid, data, false) == nil
	}
	var note terminalNote
	if json.Unmarshal(data, &note) != nil || note.Type != "resize" || note.Cols == 0 || note.Rows == 0 {
		_ = conn.Close(websocket.StatusUnsupportedData, `send {"type":"resize","cols":80,"rows":24}, or bytes in binary messages`)
		return false
	}
	return c.processes().Resize(ctx, pid, cove.WindowSize{Cols: note.Cols, Rows: note.Rows}) == nil
}

// ping notices a client that is gone without a word.
func (c *call) ping(ctx context.Context, conn *websocket.Conn) {
	tick := time.NewTicker(c.api.Heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			limit, cancel := context.WithTimeout(ctx, c.api.Stall)
			err := conn.Ping(limit)
			cancel()
			if err != nil {
				return
			}
		}
	}
}

// hangUp ends the program of a terminal whose client has gone: with HUP, as a
// line that drops, and then for good. One that has ended is left alone.
func (c *call) hangUp(pid cove.PID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), 2*c.api.HangUp)
	defer cancel()
	if c.processes().Signal(ctx, pid, "HUP") != nil {
		return
	}
	soon, stop := context.WithTimeout(ctx, c.api.HangUp)
	defer stop()
	if _, err := c.processes().Wait(soon, pid); err != nil {
		_ = c.processes().Signal(ctx, pid, "KILL") // ended between the two, or its session has
	}
}
