package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/mcpserver"
)

// send posts one message and returns the status and the body.
func (w *web) send(method, key, session, body string, header ...string) (int, string, http.Header) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.URL, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if strings.EqualFold(header[i], "Host") {
			req.Host = header[i+1]
			continue
		}
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := w.Client().Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(data), resp.Header
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func TestToolsOverHTTP(t *testing.T) {
	world := newWorld(t)
	w := serve(t, mcpserver.Config{}, world.platform)
	a, b := w.connect("boss", nil), w.connect("boss", nil)
	one := a.call("write_file", args{"path": "f", "content": "a"}).value["session_id"].(string)
	two := b.call("write_file", args{"path": "f", "content": "b"}).value["session_id"].(string)
	if one == two {
		t.Error("two MCP sessions share a sandbox")
	}
	if got := a.call("read_file", args{"path": "f"}); got.text != "a" {
		t.Errorf("%+v", got)
	}
	if got := b.call("read_file", args{"path": "f", "session_id": one}); got.text != "a" {
		t.Errorf("a session of the same key: %+v", got)
	}
	other := w.connect("other", nil)
	other.fails(cove.NotFound, "read_file", args{"path": "f", "session_id": one})
	other.fails(cove.NotFound, "stop_session", args{"session_id": one})
	if got := other.call("get_sessions", nil); len(got.value["sessions"].([]any)) != 0 {
		t.Errorf("another tenant sees %s", got.text)
	}
	none := w.connect("none", nil)
	none.fails(cove.Denied, "execute_command", args{"command": "true"})
	if got := none.call("run_python_code", args{"code": "1"}); !strings.HasPrefix(got.text, "Execution failed: ") || got.failed {
		t.Errorf("run_python_code always answers: %+v", got)
	}

	if err := a.Close(); err != nil {
		t.Error(err)
	}
	world.await(one, cove.Stopped)
	if got := b.call("execute_command", args{"command": "cat f"}); got.text != "b" {
		t.Errorf("%+v", got)
	}
}

// platform binds the engine.
func (w *world) platform(p cove.Principal) cove.Platform { return w.As(p) }

// again lets others work for a moment, and is false when the test is over.
func (w *world) again() bool {
	select {
	case <-time.After(time.Millisecond):
		return true
	case <-w.t.Context().Done():
		return false
	}
}

// await waits for a session to get into a state.
func (w *world) await(id string, state cove.State) {
	w.t.Helper()
	for w.again() {
		s, err := w.As(boss).Sessions().Get(w.t.Context(), cove.ID(id))
		if err != nil {
			w.t.Fatal(err)
		}
		if s.State == state {
			return
		}
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	world := newWorld(t)
	w := serve(t, mcpserver.Config{Hosts: []string{"cove.example"}}, world.platform)
	status, _, header := w.send(http.MethodPost, "boss", "", hello)
	session := header.Get("Mcp-Session-Id")
	if status != http.StatusOK || session == "" {
		t.Fatalf("initialize: %d, %q", status, session)
	}
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_sessions","arguments":{}}}`
	for name, tc := range map[string]struct {
		method, key, session, body string
		header                     []string
		want                       int
	}{
		"no key":             {"POST", "", "", hello, nil, 401},
		"a wrong key":        {"POST", "wrong", session, call, nil, 401},
		"too often":          {"POST", "busy", session, call, nil, 429},
		"another's session":  {"POST", "other", session, call, nil, 403},
		"another's stream":   {"GET", "other", session, "", nil, 403},
		"another's end":      {"DELETE", "other", session, "", nil, 403},
		"unknown session":    {"POST", "boss", "nosuch", call, nil, 404},
		"before hello":       {"POST", "boss", "", call, nil, 200},
		"no JSON":            {"POST", "boss", session, "{", nil, 400},
		"another type":       {"POST", "boss", session, call, []string{"Content-Type", "text/plain"}, 415},
		"too long":           {"POST", "boss", session, strings.Repeat(" ", 4<<20) + call, nil, 413},
		"another method":     {"PUT", "boss", session, call, nil, 405},
		"another protocol":   {"POST", "boss", session, call, []string{"Mcp-Protocol-Version", "1999-01-01"}, 400},
		"a page's host":      {"POST", "boss", session, call, []string{"Host", "evil.example"}, 403},
		"a page":             {"POST", "boss", session, call, []string{"Origin", "http://evil.example"}, 403},
		"a page of nowhere":  {"POST", "boss", session, call, []string{"Origin", "null"}, 403},
		"a page of here":     {"POST", "boss", session, call, []string{"Origin", "http://localhost:3000"}, 200},
		"by localhost":       {"POST", "boss", session, call, []string{"Host", "localhost"}, 200},
		"by a proxy":         {"POST", "boss", session, call, []string{"Host", "cove.example", "Origin", "https://cove.example"}, 200},
		"by an API key":      {"POST", "", session, call, []string{"X-Api-Key", "boss"}, 200},
		"by two protocols":   {"POST", "boss", session, "[" + call + "]", []string{"Mcp-Protocol-Version", "2025-06-18"}, 400},
		"an unknown request": {"POST", "boss", session, `{"jsonrpc":"2.0","id":3,"method":"nosuch"}`, nil, 400},
	} {
		status, body, header := w.send(tc.method, tc.key, tc.session, tc.body, tc.header...)
		if status != tc.want {
			t.Errorf("%s: %d %s, want %d", name, status, body, tc.want)
		}
		if status == http.StatusUnauthorized && !strings.HasPrefix(header.Get("WWW-Authenticate"), "Bearer") || status == http.StatusTooManyRequests && header.Get("Retry-After") != "7" {
			t.Errorf("%s: %v", name, header)
		}
		if name == "before hello" && !strings.Contains(body, `"error"`) {
			t.Errorf("a call before initialize: %s", body)
		}
	}
	if status, _, _ := w.send(http.MethodDelete, "boss", session, ""); status != http.StatusNoContent {
		t.Errorf("the end: %d", status)
	}
	if status, _, _ := w.send(http.MethodPost, "boss", session, call); status != http.StatusNotFound {
		t.Errorf("after the end: %d", status)
	}
}

func TestManyCallsAtOnce(t *testing.T) {
	world := newWorld(t)
	w := serve(t, mcpserver.Config{}, world.platform)
	c := w.connect("boss", nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[any]int{}
	for i := range 100 {
		wg.Go(func() {
			r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_command", Arguments: args{"command": fmt.Sprintf("echo %d", i)}})
			if err != nil {
				t.Error(err)
				return
			}
			s := saidOf(t, r)
			if s.text != fmt.Sprint(i) {
				t.Errorf("call %d: %+v", i, s)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[s.value["session_id"]]++
		})
	}
	wg.Wait()
	if len(seen) != 1 {
		t.Errorf("they ran in %v", seen)
	}
}

// running waits until something runs in the one session that there is.
func (w *world) running(unless ...<-chan struct{}) cove.ID {
	w.t.Helper()
	for w.again() {
		for _, over := range unless {
			select {
			case <-over:
				return ""
			default:
			}
		}
		for s, err := range w.As(boss).Sessions().List(w.t.Context(), cove.SessionFilter{}) {
			if err == nil && s.Busy {
				return s.ID
			}
		}
	}
	return ""
}

func (w *world) idle(id cove.ID) {
	w.t.Helper()
	for w.again() {
		if s, err := w.As(boss).Sessions().Get(w.t.Context(), id); err != nil || !s.Busy {
			return
		}
	}
}

// sleep is a call that takes long.
func sleep() *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: "execute_command", Arguments: args{"command": "sleep 1000", "timeout": 2000}}
}

func TestCallsThatAreTakenBack(t *testing.T) {
	for name, connect := range map[string]func(*testing.T, *world) client{
		"stdio": func(t *testing.T, world *world) client {
			c, _ := stdio(t, mcpserver.Config{}, world.As(boss), nil)
			return c
		},
		"http": func(t *testing.T, world *world) client {
			return serve(t, mcpserver.Config{}, world.platform).connect("boss", nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			world := newWorld(t)
			c := connect(t, world)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := c.CallTool(ctx, sleep())
				ended <- err
			}()
			id := world.running()
			cancel()
			if err := <-ended; err == nil {
				t.Error("a call that was taken back has an answer")
			}
			world.idle(id) // the program is gone
			if got := c.call("execute_command", args{"command": "echo on"}); got.text != "on" || got.value["session_id"] != string(id) {
				t.Errorf("the session goes on: %+v", got)
			}
		})
	}
}

func TestClientsThatGoAway(t *testing.T) {
	t.Run("stdio", func(t *testing.T) {
		world := newWorld(t)
		c, end := stdio(t, mcpserver.Config{}, world.As(boss), nil)
		ended := make(chan error, 1)
		go func() {
			_, err := c.CallTool(t.Context(), sleep())
			ended <- err
		}()
		id := world.running()
		if err := end(); err != nil {
			t.Error(err)
		}
		<-ended
		world.await(string(id), cove.Stopped)
	})
	t.Run("http", func(t *testing.T) {
		world := newWorld(t)
		w := serve(t, mcpserver.Config{}, world.platform)
		_, _, header := w.send(http.MethodPost, "boss", "", hello)
		session := header.Get("Mcp-Session-Id")
		ended := make(chan int, 1)
		go func() {
			status, _, _ := w.send(http.MethodPost, "boss", session, message(t, 2, "tools/call", sleep()))
			ended <- status
		}()
		id := world.running()
		if status, _, _ := w.send(http.MethodDelete, "boss", session, ""); status != http.StatusNoContent {
			t.Errorf("the end: %d", status)
		}
		<-ended
		world.await(string(id), cove.Stopped)
	})
	t.Run("without a word", func(t *testing.T) {
		world := newWorld(t)
		w := serve(t, mcpserver.Config{Idle: time.Second}, world.platform)
		_, _, header := w.send(http.MethodPost, "boss", "", hello)
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, strings.NewReader(message(t, 2, "tools/call", sleep())))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer boss", "Mcp-Session-Id": header.Get("Mcp-Session-Id"),
		} {
			req.Header.Set(name, value)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			resp, err := w.Client().Do(req)
			if err != nil {
				return
			}
			defer resp.Body.Close()
			if resp.StatusCode == http.StatusNotFound {
				t.Log("the machine is so slow that the MCP session was idle before its first call")
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
		}()
		id := world.running(ended)
		cancel()
		<-ended
		if id != "" {
			world.await(string(id), cove.Stopped)
		}
	})
	t.Run("the server", func(t *testing.T) {
		world := newWorld(t)
		w := serve(t, mcpserver.Config{}, world.platform)
		_, _, header := w.send(http.MethodPost, "boss", "", hello)
		session := header.Get("Mcp-Session-Id")
		ended := make(chan int, 1)
		go func() {
			status, _, _ := w.send(http.MethodPost, "boss", session, message(t, 2, "tools/call", sleep()))
			ended <- status
		}()
		id := world.running()
		if err := w.handler.Close(t.Context()); err != nil {
			t.Error(err)
		}
		<-ended
		if s, err := world.As(boss).Sessions().Get(t.Context(), id); err != nil || s.State != cove.Running {
			t.Errorf("sandboxes stay when a server ends: %+v, %v", s, err)
		}
		if _, body, _ := w.send(http.MethodPost, "boss", "", hello); !strings.Contains(body, "the server ends") {
			t.Errorf("afterwards: %s", body)
		}
	})
}

func TestKeysThatAreRevoked(t *testing.T) {
	world := newWorld(t)
	revoked := make(chan struct{})
	cfg := mcpserver.Config{Watch: func(ctx context.Context, _ cove.Principal) (context.Context, func()) {
		ctx, cut := context.WithCancelCause(ctx)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			select {
			case <-revoked:
				cut(cove.Errorf(cove.Unauthenticated, "the key was revoked"))
			case <-stop:
			}
		})
		return ctx, func() { close(stop); wg.Wait(); cut(nil) }
	}}
	c, _ := stdio(t, cfg, world.As(boss), nil)
	ended := make(chan said, 1)
	go func() {
		r, err := c.CallTool(t.Context(), sleep())
		if err != nil {
			t.Error(err)
			r = &mcp.CallToolResult{}
		}
		ended <- saidOf(t, r)
	}()
	id := world.running()
	close(revoked)
	if got := <-ended; !got.failed || got.text != "the key was revoked" {
		t.Errorf("%+v", got)
	}
	world.idle(id)
}

// message is a request as it is on the wire.
func message(t *testing.T, id int, method string, params any) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
