package telemetry_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/telemetry"
)

// collector is a receiver of OTLP in JSON.
type collector struct {
	*httptest.Server

	mu     sync.Mutex
	status int
	spans  []span
	bodies strings.Builder
	hold   chan struct{} // closed: answers; nil: answers at once
}

type span struct {
	TraceID           string `json:"traceId"`
	SpanID            string `json:"spanId"`
	ParentSpanID      string `json:"parentSpanId"`
	Name              string
	Kind              int
	StartTimeUnixNano string
	EndTimeUnixNano   string
	Attributes        []struct {
		Key   string
		Value map[string]string
	}
	Events []struct{ Name string }
	Status struct{ Code int }
}

func (s span) attribute(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value["stringValue"] + a.Value["intValue"]
		}
	}
	return ""
}

func collect(t *testing.T) *collector {
	t.Helper()
	c := &collector{status: http.StatusOK}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var in struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []span }
			}
		}
		if err = errors.Join(err, json.Unmarshal(body, &in)); err != nil || r.URL.Path != "/base/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		if c.hold != nil {
			<-c.hold
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bodies.Write(body)
		for _, rs := range in.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				c.spans = append(c.spans, ss.Spans...)
			}
		}
		w.WriteHeader(c.status)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) find(t *testing.T, name string) span {
	t.Helper()
	for _, s := range c.spans {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no span %q", name)
	return span{}
}

func traced(t *testing.T, c *collector) *rig {
	return start(t, func(cfg *telemetry.Config) { cfg.Endpoint = c.URL + "/base" })
}

func TestTraces(t *testing.T) {
	c := collect(t)
	r := traced(t, c)
	req := httptest.NewRequest(http.MethodPost, "/api/sandboxes/x?token=hush", nil)
	req.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	ctx := r.Request(req, "/api/sandboxes/{id}/execute")
	inner, end := r.Begin(ctx, of(cove.ProcessExec))
	r.Note(inner, cove.Happening{Observed: ann, Kind: cove.PoolHit})
	began := time.Unix(1_000_000, 0)
	end(cove.Ending{
		Observed: of(cove.ProcessExec), Effect: cove.Allow, Code: cove.Unavailable, Outcome: cove.Exited, ExitCode: 3, Bytes: 5,
		Began: began, Decided: began.Add(1), Intended: began.Add(2), Done: began.Add(3), Ended: began.Add(4),
	})
	r.Answered(ctx, telemetry.Answer{Method: "POST", Status: 503, Principal: "key1"})
	r.act(t.Context(), cove.Ending{Observed: of(cove.SessionGet)}) // a trace of its own
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	server, action := c.find(t, "POST /api/sandboxes/{id}/execute"), c.find(t, "process.exec")
	if server.TraceID != "0af7651916cd43dd8448eb211c80319c" || server.ParentSpanID != "b7ad6b7169203331" || server.Kind != 2 || server.Status.Code != 2 || server.attribute("http.response.status_code") != "503" {
		t.Errorf("the request's span is %+v", server)
	}
	if action.TraceID != server.TraceID || action.ParentSpanID != server.SpanID || action.Kind != 1 || action.Status.Code != 2 || len(action.Events) != 1 || action.Events[0].Name != cove.PoolHit {
		t.Errorf("the action's span is %+v", action)
	}
	got := map[string]string{}
	for _, key := range []string{"cove.tenant", "cove.user", "cove.thread", "cove.session", "cove.provider", "cove.outcome", "cove.exit_code", "cove.code", "cove.bytes"} {
		got[key] = action.attribute(key)
	}
	want := map[string]string{
		"cove.tenant": "acme", "cove.user": "ann", "cove.thread": "t9", "cove.session": "s1", "cove.provider": "fake",
		"cove.outcome": "exited", "cove.exit_code": "3", "cove.code": "unavailable", "cove.bytes": "5",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("its attributes (-want +got):\n%s", diff)
	}
	for i, name := range []string{"decide", "journal intent", "do", "journal outcome"} {
		part := c.find(t, name)
		if from, to := nano(i), nano(i+1); part.ParentSpanID != action.SpanID || part.StartTimeUnixNano != from || part.EndTimeUnixNano != to {
			t.Errorf("%s is %+v, want it from %s to %s", name, part, from, to)
		}
	}
	if own := c.find(t, "session.get"); own.TraceID == server.TraceID || own.ParentSpanID != "" {
		t.Errorf("an action without a request has the span %+v", own)
	}
	if strings.Contains(c.bodies.String(), "hush") || !strings.Contains(c.bodies.String(), `"service.version","value":{"stringValue":"1.2.3"}`) {
		t.Errorf("what was sent is %s", c.bodies.String())
	}
	if !strings.Contains(r.log.String(), "trace_id=0af7651916cd43dd8448eb211c80319c") {
		t.Errorf("the log does not name the trace: %s", r.log)
	}
}

func nano(i int) string { return "100000000000000" + string(rune('0'+i)) }

func TestACallerThatWantsNoTraceGetsNone(t *testing.T) {
	c := collect(t)
	r := traced(t, c)
	req := httptest.NewRequest(http.MethodGet, "/", nil)
	req.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
	ctx := r.Request(req, "/x")
	r.act(ctx, cove.Ending{Observed: of(cove.SessionGet)})
	r.Answered(ctx, telemetry.Answer{Method: "GET", Status: 200, Principal: "key1"})
	if err := r.Close(t.Context()); err != nil || len(c.spans) != 0 {
		t.Errorf("%d spans were sent, %v", len(c.spans), err)
	}
}

func TestTheQueueIsBounded(t *testing.T) {
	c := collect(t)
	c.hold = make(chan struct{})
	r := traced(t, c)
	const actions = 1500 // of five spans each
	for range actions {
		r.act(t.Context(), cove.Ending{Observed: of(cove.SessionGet)})
	}
	text := r.scraped()
	if !strings.Contains(text, `cove_trace_spans_total{result="dropped"}`) {
		t.Errorf("nothing was dropped: %s", related(text, "cove_trace_spans_total"))
	}
	close(c.hold)
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(c.spans); n < 2048 || n >= 5*actions {
		t.Errorf("%d of %d spans arrived", n, 5*actions)
	}
	r.act(t.Context(), cove.Ending{Observed: of(cove.SessionGet)}) // after the end: nothing happens
}

func TestTheCollectorIsAway(t *testing.T) {
	c := collect(t)
	c.status = http.StatusBadGateway
	r := traced(t, c)
	r.act(t.Context(), cove.Ending{Observed: of(cove.SessionOpen)})
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	r.wants(`cove_trace_spans_total{result="failed"} 5`)
	if n := strings.Count(r.log.String(), "traces cannot be sent"); n != 1 || !strings.Contains(r.log.String(), "502 Bad Gateway") {
		t.Errorf("the log says so %d times: %s", n, r.log)
	}
}

func TestTheCollectorComesBack(t *testing.T) {
	c := collect(t)
	c.status = http.StatusFound // a redirect is not followed
	r := traced(t, c)
	fill := func() {
		for range 52 { // more than a batch
			r.act(t.Context(), cove.Ending{Observed: of(cove.SessionOpen)})
		}
	}
	fill()
	for !strings.Contains(r.scraped(), `cove_trace_spans_total{result="failed"}`) {
		if t.Context().Err() != nil {
			t.Fatal("the first batch was not sent")
		}
	}
	c.mu.Lock()
	c.status = http.StatusOK
	c.mu.Unlock()
	fill()
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if !strings.Contains(r.log.String(), "traces are sent again") {
		t.Errorf("the log is %s", r.log)
	}
}

func TestTheCollectorDoesNotAnswer(t *testing.T) {
	c := collect(t)
	c.hold = make(chan struct{})
	defer close(c.hold)
	r := traced(t, c)
	r.act(t.Context(), cove.Ending{Observed: of(cove.SessionOpen)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Close(ctx); cove.CodeOf(err) != cove.Timeout {
		t.Errorf("the error is %v, want Timeout", err)
	}
}

func TestEndpointsThatAreNone(t *testing.T) {
	for _, endpoint := range []string{"collector:4318", "ftp://x", "http://", "\x00"} {
		if _, err := telemetry.New(telemetry.Config{Endpoint: endpoint}); cove.CodeOf(err) != cove.Invalid || !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_ENDPOINT") {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}

func TestNobodyIsTheCollector(t *testing.T) {
	c := collect(t)
	c.Close()
	r := start(t, func(cfg *telemetry.Config) { cfg.Endpoint = strings.Replace(c.URL, "://", "://hush@", 1) })
	r.act(t.Context(), cove.Ending{Observed: of(cove.SessionOpen)})
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if text := r.log.String(); strings.Contains(text, "hush") || !strings.Contains(text, "connection refused") {
		t.Errorf("the log is %s", text)
	}
}
