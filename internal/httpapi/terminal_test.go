package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/httpapi"
	"github.com/cove-sandbox/cove/internal/intake"
	"github.com/cove-sandbox/cove/internal/wire"
)

const terminalPath = "/api/sandboxes/x/terminal"

// attach opens a terminal.
func (r *rig) attach(query string) *websocket.Conn {
	r.t.Helper()
	c, _, err := websocket.Dial(r.t.Context(), r.server.URL+terminalPath+query, &websocket.DialOptions{ //nolint:bodyclose // the package says not to
		HTTPHeader: http.Header{"Authorization": {"Bearer " + secret}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.CloseNow() })
	return c
}

// shellLike is a terminal that echoes, and ends when told to.
type shellLike struct {
	out   chan cove.Chunk
	ended chan struct{}
}

func (f *fake) shellLike() *shellLike {
	s := &shellLike{out: make(chan cove.Chunk, 100), ended: make(chan struct{})}
	var sent int64
	f.input = func(data []byte, _ bool) error {
		if string(data) == "exit\n" {
			close(s.ended)
			return nil
		}
		s.out <- cove.Chunk{Stream: cove.Stdout, Offset: sent, Data: bytes.Clone(data)}
		sent += int64(len(data))
		return nil
	}
	f.connect = func(ctx context.Context, _ cove.PID, _ int64) iter.Seq2[cove.Chunk, error] {
		return func(yield func(cove.Chunk, error) bool) {
			for {
				select {
				case c := <-s.out:
					if !yield(c, nil) {
						return
					}
				case <-s.ended:
					return
				case <-ctx.Done():
					yield(cove.Chunk{}, ctx.Err())
					return
				}
			}
		}
	}
	f.wait = func(ctx context.Context, _ cove.PID) (*cove.Execution, error) {
		select {
		case <-s.ended:
			return &cove.Execution{Result: cove.Result{Outcome: cove.Exited, ExitCode: 7}}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s
}

func TestTerminal(t *testing.T) {
	r := serve(t, func(c *httpapi.Config) { c.Heartbeat = time.Millisecond })
	r.fake.shellLike()
	r.fake.signal = func(cove.Signal) error { return cove.Errorf(cove.NotFound, "it has ended") }
	c := r.attach("?cols=100&rows=30&command=top")
	if err := c.Write(t.Context(), websocket.MessageBinary, []byte("hi\xff")); err != nil {
		t.Fatal(err)
	}
	if kind, data, err := c.Read(t.Context()); err != nil || kind != websocket.MessageBinary || string(data) != "hi\xff" {
		t.Fatalf("%v %q %v", kind, data, err)
	}
	if err := c.Write(t.Context(), websocket.MessageText, []byte(`{"type":"resize","cols":120,"rows":40}`)); err != nil {
		t.Fatal(err)
	}
	if err := c.Write(t.Context(), websocket.MessageBinary, []byte("exit\n")); err != nil {
		t.Fatal(err)
	}
	kind, data, err := c.Read(t.Context())
	var note struct {
		Type   string
		Result wire.Execution
	}
	if err != nil || kind != websocket.MessageText || json.Unmarshal(data, &note) != nil || note.Type != "exit" || note.Result.ExitCode != 7 {
		t.Errorf("the last message is %v %q %v", kind, data, err)
	}
	if _, _, err := c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("after it comes %v", err)
	}
	started := r.fake.seen(cove.ProcessStart)
	want := cove.ExecRequest{Line: "top", KeepStdin: true, TTY: &cove.WindowSize{Cols: 100, Rows: 30}}
	if req := started[0].Args[1].(cove.ExecRequest); len(started) != 1 || req.Line != want.Line || !req.KeepStdin || *req.TTY != *want.TTY {
		t.Errorf("started was %+v", started)
	}
	if got := r.fake.seen(cove.ProcessResize); len(got) != 1 || got[0].Args[2] != (cove.WindowSize{Cols: 120, Rows: 40}) {
		t.Errorf("resized was %v", got)
	}
}

// TestTerminalWhoseClientLeaves: nothing of a terminal stays behind.
func TestTerminalWhoseClientLeaves(t *testing.T) {
	r := serve(t, quick)
	s := r.fake.shellLike()
	signals := make(chan cove.Signal, 2)
	r.fake.signal = func(sig cove.Signal) error {
		signals <- sig
		if sig == "KILL" {
			close(s.ended)
		}
		return nil
	}
	c := r.attach("")
	_ = c.CloseNow()
	if one, two := <-signals, <-signals; one != "HUP" || two != "KILL" {
		t.Errorf("the program got %s and %s", one, two)
	}
	if line := r.fake.seen(cove.ProcessStart)[0].Args[1].(cove.ExecRequest).Line; !strings.Contains(line, "bash") || !strings.Contains(line, "sh -i") {
		t.Errorf("a terminal runs %q", line)
	}
}

// TestTerminalThatNeverReads: a client that takes nothing is let go.
func TestTerminalThatNeverReads(t *testing.T) {
	r := serve(t, quick)
	signals := make(chan cove.Signal, 2)
	r.fake.signal = func(sig cove.Signal) error {
		signals <- sig
		return cove.Errorf(cove.NotFound, "it has ended")
	}
	r.fake.connect = func(ctx context.Context, _ cove.PID, _ int64) iter.Seq2[cove.Chunk, error] {
		return func(yield func(cove.Chunk, error) bool) {
			for ctx.Err() == nil && yield(cove.Chunk{Stream: cove.Stdout, Data: make([]byte, 1<<20)}, nil) {
			}
		}
	}
	r.attach("")
	<-signals
}

func TestTerminalMessagesThatDoNotFit(t *testing.T) {
	for name, message := range map[string]string{
		"no json": "hello", "unknown": `{"type":"dance"}`, "no size": `{"type":"resize"}`, "bad size": `{"type":"resize","cols":-1,"rows":5}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t)
			r.fake.shellLike()
			r.fake.signal = func(cove.Signal) error { return cove.Errorf(cove.NotFound, "it has ended") }
			c := r.attach("")
			if err := c.Write(t.Context(), websocket.MessageText, []byte(message)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusUnsupportedData {
				t.Errorf("it was answered with %v", err)
			}
		})
	}
	r := serve(t)
	r.fake.shellLike()
	r.fake.signal = func(cove.Signal) error { return cove.Errorf(cove.NotFound, "it has ended") }
	c := r.attach("")
	_ = c.Write(t.Context(), websocket.MessageBinary, make([]byte, 2<<20))
	if _, _, err := c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
		t.Errorf("a huge message was answered with %v", err)
	}
}

func TestTerminalErrors(t *testing.T) {
	r := serve(t)
	if a := r.send("GET", terminalPath, ""); a.status != 400 || len(r.fake.calls) != 0 {
		t.Errorf("without WebSocket: %d, %d calls", a.status, len(r.fake.calls))
	}
	// A handshake that is none, after the program was started.
	r.fake.signal = func(cove.Signal) error { return cove.Errorf(cove.NotFound, "it has ended") }
	if a := r.send("GET", terminalPath, "", "Connection", "Upgrade", "Upgrade", "websocket"); a.status/100 != 4 {
		t.Errorf("half a handshake: %d", a.status)
	}
	for name, set := range map[string]func(){
		"connect": func() {
			r.fake.connect = func(context.Context, cove.PID, int64) iter.Seq2[cove.Chunk, error] {
				return func(yield func(cove.Chunk, error) bool) { yield(cove.Chunk{}, cove.Errorf(cove.NotFound, "gone")) }
			}
		},
		"wait": func() {
			r.fake.connect = func(context.Context, cove.PID, int64) iter.Seq2[cove.Chunk, error] {
				return func(func(cove.Chunk, error) bool) {}
			}
			r.fake.wait = func(context.Context, cove.PID) (*cove.Execution, error) {
				return nil, cove.Errorf(cove.NotFound, "gone")
			}
		},
	} {
		set()
		c := r.attach("")
		_, data, err := c.Read(t.Context())
		if err != nil || !strings.Contains(string(data), `"type":"error"`) || !strings.Contains(string(data), `"code":"not_found"`) {
			t.Errorf("%s: %q %v", name, data, err)
		}
	}
	r.fake.fail = cove.Errorf(cove.Denied, "no")
	options := &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + secret}}}
	_, resp, err := websocket.Dial(t.Context(), r.server.URL+terminalPath, options) //nolint:bodyclose // the package says not to
	if err == nil || resp == nil || resp.StatusCode != 403 {
		t.Errorf("a terminal that is denied: %v %v", resp, err)
	}
}

// TestRefusedTerminal: a terminal that the command policy refuses ends with the error.
func TestRefusedTerminal(t *testing.T) {
	r := serve(t)
	r.fake.start = func(context.Context, cove.ExecRequest) (*cove.ProcessInfo, error) {
		return nil, cove.Errorf(cove.Denied, "bash is denied").Reason(cove.ReasonCommandPolicy)
	}
	kind, data, err := r.attach("").Read(t.Context())
	if err != nil || kind != websocket.MessageText {
		t.Fatalf("%v %v", kind, err)
	}
	var note struct {
		Type  string
		Error wire.Problem
	}
	if err := json.Unmarshal(data, &note); err != nil {
		t.Fatal(err)
	}
	if note.Type != "error" || note.Error.Status != 403 || note.Error.Error != "bash is denied" {
		t.Errorf("%s", data)
	}
}

// TestTerminalInputThatFails: a program that takes no more ends the terminal.
func TestTerminalInputThatFails(t *testing.T) {
	for name, message := range map[string]websocket.MessageType{"input": websocket.MessageBinary, "resize": websocket.MessageText} {
		r := serve(t)
		r.fake.shellLike()
		r.fake.signal = func(cove.Signal) error { return cove.Errorf(cove.NotFound, "it has ended") }
		r.fake.input = func([]byte, bool) error { return errors.New("closed") }
		c := r.attach("")
		r.fake.mu.Lock()
		r.fake.fail = cove.Errorf(cove.Unsupported, "no")
		r.fake.mu.Unlock()
		_ = c.Write(t.Context(), message, []byte(`{"type":"resize","cols":1,"rows":1}`))
		for {
			if _, _, err := c.Read(t.Context()); err != nil {
				break
			}
		}
		_ = name
	}
}

// TestTerminalMessagesAreCharged: what a client types counts as a body of its key.
func TestTerminalMessagesAreCharged(t *testing.T) {
	bodies := intake.New()
	r := serve(t, func(c *httpapi.Config) { c.Bodies = bodies })
	r.fake.shellLike()
	r.fake.signal = func(cove.Signal) error { return cove.Errorf(cove.NotFound, "it has ended") }
	full := bodies.Body(cove.Principal{Name: "tester", Tenant: "acme"})
	if err := full.Take(t.Context(), 10<<20); err != nil {
		t.Fatal(err)
	}
	c := r.attach("")
	if err := c.Write(t.Context(), websocket.MessageBinary, []byte("hi")); err != nil {
		t.Fatal(err)
	}
	kind, data, err := c.Read(t.Context())
	if err != nil || kind != websocket.MessageText || !strings.Contains(string(data), `"type":"error"`) || !strings.Contains(string(data), "that are under way hold 10m") {
		t.Errorf("%v %q %v", kind, data, err)
	}
}
