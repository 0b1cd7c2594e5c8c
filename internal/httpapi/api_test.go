package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/httpapi"
	"github.com/cove-sandbox/cove/internal/wire"
)

// badEvents yields an event that cannot be written.
func badEvents(context.Context, cove.EventFilter) iter.Seq2[cove.Event, error] {
	return func(yield func(cove.Event, error) bool) { yield(cove.Event{Data: json.RawMessage("{")}, nil) }
}

// logged keeps what is logged. It is safe for concurrent use.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logged) config(c *httpapi.Config) { c.Logger = slog.New(slog.NewJSONHandler(l, nil)) }

func TestHead(t *testing.T) {
	r := serve(t)
	for _, path := range []string{"/api/sandboxes", "/api/sandboxes/x", "/health", "/ready"} {
		if a := r.send("HEAD", path, ""); a.status != 200 || a.body != "" || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("HEAD %s: %d %q", path, a.status, a.body)
		}
	}
	if a := r.send("HEAD", "/api/sandboxes", "", "Authorization", ""); a.status != 401 {
		t.Errorf("HEAD without a key: %d", a.status)
	}
	if a := r.send("PUT", "/api/sandboxes", ""); a.header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("Allow: %q", a.header.Get("Allow"))
	}
}

func TestBlockedBackgroundProgram(t *testing.T) {
	r := serve(t)
	r.fake.start = func(context.Context, cove.ExecRequest) (*cove.ProcessInfo, error) {
		return &cove.ProcessInfo{Command: "rm x", Result: &cove.Execution{Result: cove.Result{Outcome: cove.Blocked, ExitCode: 126}}}, nil
	}
	for path, body := range map[string]string{
		"/api/sandboxes/x/processes": `{"command":"rm x"}`,
		"/api/sandboxes/x/execute":   `{"command":"rm x","background":true}`,
	} {
		a := r.send("POST", path, body)
		if a.status != 200 || strings.Contains(a.body, `"pid"`) || !strings.Contains(a.body, `"outcome":"blocked"`) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if a := r.send("POST", "/api/sandboxes", "null"); a.status != 400 || !strings.Contains(a.body, "the body is null") {
		t.Errorf("null: %d %s", a.status, a.body)
	}
}

func TestRequestIDs(t *testing.T) {
	r := serve(t)
	if got := r.send("GET", "/health", "", "X-Request-Id", "trace-1.a_B").header.Get("X-Request-Id"); got != "trace-1.a_B" {
		t.Errorf("a sane id came back as %q", got)
	}
	for _, bad := range []string{"", "a b", strings.Repeat("x", 65), "a\tb", "<script>"} {
		got := r.send("GET", "/health", "", "X-Request-Id", bad).header.Get("X-Request-Id")
		if !cove.ID(got).Valid() {
			t.Errorf("in the place of %q came %q", bad, got)
		}
	}
}

func TestWithoutAKey(t *testing.T) {
	r := serve(t)
	open := map[string]bool{"/health": true, "/ready": true, "/api/v1/health": true, "/": true}
	var doc struct {
		Paths map[string]map[string]any
	}
	if err := json.Unmarshal([]byte(r.send("GET", "/openapi.json", "").body), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Paths) < 40 {
		t.Fatalf("only %d paths are described", len(doc.Paths))
	}
	for path, methods := range doc.Paths {
		for method := range methods {
			for _, key := range []string{"", "Bearer wrong"} {
				a := r.send(strings.ToUpper(method), path, "", "Authorization", key)
				if path == "/assets/{file}" { // of a console that is not there
					if a.status != 404 {
						t.Errorf("%s without a console: %d", path, a.status)
					}
					continue
				}
				if open[path] {
					if a.status != 200 {
						t.Errorf("%s %s without a key: %d", method, path, a.status)
					}
					continue
				}
				if a.status != 401 || method != "head" && a.problem(t).Code != cove.Unauthenticated || !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer") {
					t.Errorf("%s %s without a key: %d %q", method, path, a.status, a.body)
				}
			}
		}
	}
	if n := len(r.fake.calls); n != 0 {
		t.Errorf("the platform was called %d times", n)
	}
}

func TestDoneIsCalled(t *testing.T) {
	r := serve(t)
	r.send("GET", "/api/stats", "")
	r.fake.fail = cove.Errorf(cove.Denied, "no")
	r.send("GET", "/api/stats", "")
	if n := r.done.Load(); n != 2 {
		t.Errorf("done was called %d times for 2 requests", n)
	}
}

func TestHealth(t *testing.T) {
	status := wire.Healthy
	r := serve(t, func(c *httpapi.Config) {
		c.Health = func(context.Context) wire.Health {
			return wire.Health{Status: status, NodeID: "n", RedisConnected: true}
		}
	})
	var got wire.Health
	a := r.send("GET", "/api/v1/health", "")
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		t.Fatal(err)
	}
	want := wire.Health{Status: "healthy", Message: "Service is healthy", Version: "1.2.3", NodeID: "n", RedisConnected: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if a := r.send("GET", "/ready", ""); a.status != 200 {
		t.Errorf("/ready: %d", a.status)
	}
	if a := r.send("HEAD", "/health", ""); a.status != 200 || a.body != "" {
		t.Errorf("HEAD /health: %d %q", a.status, a.body)
	}
	status = "draining"
	if a := r.send("GET", "/ready", ""); a.status != 503 || !strings.Contains(a.body, "draining") {
		t.Errorf("/ready of a server that is not: %d %q", a.status, a.body)
	}
	if a := r.send("GET", "/health", ""); a.status != 200 {
		t.Errorf("/health of a server that is draining: %d", a.status)
	}
	if a := serve(t).send("GET", "/ready", ""); a.status != 200 {
		t.Errorf("/ready by default: %d", a.status)
	}
}

func TestFrontPage(t *testing.T) {
	a := serve(t).send("GET", "/", "")
	if a.status != 200 || !strings.Contains(a.body, "/openapi.json") || !strings.Contains(a.body, "not part of this build") {
		t.Errorf("%d %q", a.status, a.body)
	}
}

// TestGuide: a model that has a key is told how to use Cove.
func TestGuide(t *testing.T) {
	a := serve(t).send("GET", "/llms.txt", "")
	if a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") || !strings.Contains(a.body, "# Using Cove") {
		t.Errorf("%d %q", a.status, a.body)
	}
}

// shelfOfPages is a console of two files.
type shelfOfPages struct{}

func (shelfOfPages) Serve(w http.ResponseWriter, _ *http.Request, name string) bool {
	if name != "" && name != "main.js" {
		return false
	}
	_, _ = io.WriteString(w, "file "+name)
	return true
}

func TestFrontPageWithAConsole(t *testing.T) {
	r := serve(t, func(c *httpapi.Config) { c.Console = shelfOfPages{} })
	for _, tc := range []struct {
		path, accept, words string
		status              int
	}{
		{"/", "text/html,*/*;q=0.8", "file ", 200},
		{"/", "*/*", "A browser finds the web console here", 200},
		{"/", "", "/openapi.json", 200},
		{"/assets/main.js", "*/*", "file main.js", 200},
		{"/assets/none.js", "*/*", "there is no route", 404},
		{"/assets/", "*/*", "there is no route", 404},
	} {
		a := r.send("GET", tc.path, "", "Authorization", "", "Accept", tc.accept)
		if a.status != tc.status || !strings.Contains(a.body, tc.words) {
			t.Errorf("%s for %q: %d %q", tc.path, tc.accept, a.status, a.body)
		}
	}
}

func TestWhoAmI(t *testing.T) {
	a := serve(t).send("GET", "/api/whoami", "")
	if a.status != 200 || !strings.Contains(a.body, `"name":"tester","tenant":"acme","scopes":[`) {
		t.Errorf("%d %q", a.status, a.body)
	}
}

func TestCheckJournal(t *testing.T) {
	if a := serve(t).send("GET", "/api/events/verify", ""); a.status != 501 {
		t.Errorf("without a journal: %d %s", a.status, a.body)
	}
	r := serve(t, func(c *httpapi.Config) {
		c.Journal = func(context.Context) (wire.JournalCheck, error) {
			return wire.JournalCheck{Lines: 3, Problems: []string{"line 2 was changed"}}, nil
		}
	})
	if a := r.send("GET", "/api/events/verify", ""); a.status != 200 || !strings.Contains(a.body, `{"lines":3,"problems":["line 2 was changed"]}`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	r.fake.fail = cove.Errorf(cove.Denied, "no")
	if a := r.send("GET", "/api/events/verify", ""); a.status != 403 {
		t.Errorf("for who is no admin: %d %s", a.status, a.body)
	}
}

// TestLog: a line for each request, the causes of errors, and no secrets.
func TestLog(t *testing.T) {
	log := &logged{}
	r := serve(t, log.config)
	r.send("POST", "/api/sandboxes/x/execute?", `{"command":"echo hush1","env":{"A":"hush2"},"stdin":"hush3"}`)
	r.send("GET", "/api/sandboxes/x/files/stat?path=hush4", "")
	r.fake.fail = cove.Wrap(cove.Internal, errors.New("the hidden cause"), "shown")
	a := r.send("GET", "/api/stats", "", "X-Request-Id", "req-1")
	if strings.Contains(a.body, "the hidden cause") {
		t.Errorf("the cause was sent: %s", a.body)
	}
	r.fake.fail = cove.Wrap(cove.NotFound, errors.New("the hidden cause"), "shown")
	r.send("GET", "/api/stats", "")
	text := log.text()
	if strings.Contains(text, "hush") || strings.Contains(text, secret) {
		t.Errorf("the log holds a secret: %s", text)
	}
	var lines []map[string]any
	for line := range strings.Lines(text) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, m)
	}
	if len(lines) != 5 {
		t.Fatalf("%d lines were logged: %s", len(lines), text)
	}
	first := lines[0]
	if first["msg"] != "request" || first["status"] != 200.0 || first["principal"] != "tester" || first["tenant"] != "acme" ||
		first["route"] != "/api/sandboxes/{id}/execute" || first["path"] != "/api/sandboxes/x/execute" || first["bytes"].(float64) < 10 {
		t.Errorf("the first line is %v", first)
	}
	if e := lines[2]; e["msg"] != "request failed" || e["level"] != "ERROR" || e["request_id"] != "req-1" || !strings.Contains(e["error"].(string), "the hidden cause") {
		t.Errorf("the error is logged as %v", e)
	}
}

func TestPanics(t *testing.T) {
	log := &logged{}
	r := serve(t, log.config)
	r.fake.exec = func(_ context.Context, req cove.ExecRequest) (*cove.Execution, error) {
		if req.OnOutput != nil {
			req.OnOutput(cove.Chunk{Stream: cove.Stdout, Data: []byte("begun")})
		}
		panic("a bug with a hush") //nolint:forbidigo // what is tested
	}
	a := r.send("POST", "/api/sandboxes/x/execute", `{"command":"x"}`)
	if p := a.problem(t); a.status != 500 || p.Code != cove.Internal || strings.Contains(a.body, "hush") {
		t.Errorf("%d %q", a.status, a.body)
	}
	if text := log.text(); !strings.Contains(text, "a bug with a hush") || !strings.Contains(text, "api_test.go") {
		t.Errorf("the log does not say where: %s", text)
	}
	req := r.request("POST", "/api/sandboxes/x/execute", strings.NewReader(`{"command":"x"}`), "Accept", "text/event-stream")
	resp, err := r.server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err == nil {
		t.Errorf("a stream that panicked looks whole: %q", body.String())
	}
	r.fake.exec = nil
	if a := r.send("GET", "/health", ""); a.status != 200 {
		t.Errorf("the server does not go on: %d", a.status)
	}
}

func TestStandardHeaders(t *testing.T) {
	a := serve(t).send("GET", "/api/stats", "")
	want := http.Header{"X-Content-Type-Options": {"nosniff"}, "Cache-Control": {"no-store"}, "Content-Type": {"application/json"}}
	for name := range want {
		if a.header.Get(name) != want.Get(name) {
			t.Errorf("%s is %q", name, a.header.Get(name))
		}
	}
}

func TestAnswersForPeople(t *testing.T) {
	r := serve(t)
	for path, want := range map[string]string{
		"GET /api/volumes":                                        `{"items":[{"source":"string-`,
		"GET /api/runs/r/status":                                  `{"run_id":"ID-2","status":"RunState-`,
		"GET /api/maintenance":                                    `{"overall_status":"failing","tasks":{"expiry":{"state":"TaskState-4","interval_seconds":5.25,`,
		"POST /api/maintenance/cleanup":                           `"orphans_removed":17}`,
		"POST /api/maintenance/pause?task=x":                      `{"overall_status"`,
		"DELETE /api/sandboxes/x?keep_workspace":                  `{"sandbox_id":"x","session_id":"x","status":"ended","snapshot_id":"kept"}`,
		"GET /api/sandboxes?limit=2":                              `"next_cursor":"000002"}`,
		"GET /api/sandboxes/x/files/list?limit=1&cursor=1&path=.": `"next_cursor":"2"}`,
		"POST /api/sandboxes/x/execute":                           `"stdout":"bytes 11"`,
		"POST /api/sandboxes/x/code":                              `"success":false,"results":[{`,
	} {
		method, path, _ := strings.Cut(path, " ")
		body := ""
		if method == "POST" && strings.HasSuffix(path, "/execute") {
			body = `{"command":["true"]}`
		}
		a := r.send(method, path, body)
		if a.status != 200 && a.status != 201 || !strings.Contains(a.body, want) {
			t.Errorf("%s %s: %d %s\nwant %s", method, path, a.status, a.body, want)
		}
	}
	if got := r.fake.seen(cove.SessionClose); len(got) != 1 || got[0].Args[1] != true {
		t.Errorf("keep_workspace without a value arrived as %v", got)
	}
	if got := r.fake.seen(cove.AdminControlTask); len(got) != 2 {
		t.Errorf("the tasks were controlled %v", got)
	}
}

func TestStatusesOfOpen(t *testing.T) {
	r := serve(t)
	if a := r.send("POST", "/api/sandboxes", "{}", "Idempotency-Key", "k"); a.status != 201 {
		t.Errorf("a new session: %d", a.status)
	}
	if got := r.fake.seen(cove.SessionOpen); got[0].Args[0].(cove.OpenRequest).IdempotencyKey != "k" {
		t.Errorf("the key arrived as %v", got)
	}
	r.fake.open = func(context.Context, cove.OpenRequest) (*cove.Session, error) { return &cove.Session{ID: "s"}, nil }
	if a := r.send("POST", "/api/sandboxes", "{}"); a.status != 200 || !strings.Contains(a.body, `"created":false`) {
		t.Errorf("a session that was there: %d %s", a.status, a.body)
	}
}

func TestBackgroundExecute(t *testing.T) {
	r := serve(t)
	a := r.send("POST", "/api/sandboxes/x/execute", `{"command":"sleep 9","background":true}`)
	var p wire.Process
	if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.status != 202 || p.PID == 0 {
		t.Errorf("%d %s %v", a.status, a.body, err)
	}
	r.fake.fail = cove.Errorf(cove.Conflict, "stopped")
	if a := r.send("POST", "/api/sandboxes/x/execute", `{"command":"sleep 9","background":true}`); a.status != 409 {
		t.Errorf("%d", a.status)
	}
}
