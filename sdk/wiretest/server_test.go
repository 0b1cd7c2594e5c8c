package wiretest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/sdk/wiretest"
)

func ask(t *testing.T, s *wiretest.Server, method, path, body string, headers ...string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }() // it is read
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestFaults makes every mistake that an SDK can make.
func TestFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		method, path, body string
		headers            []string
		want               string // in the only fault; "" wants none
	}{
		"as described":    {method: "POST", path: "/api/sandboxes/x/execute", body: `{"command":["true"],"timeout":1,"env":{"A":"b"}}`},
		"a line":          {method: "POST", path: "/api/sandboxes/x/execute", body: `{"command":"true","timeout":null}`},
		"with input":      {method: "POST", path: "/api/sandboxes/x/execute", body: "{\"command\":\"cat\"}\nmore", headers: []string{"Content-Type", "application/x-cove-exec"}},
		"unknown path":    {method: "GET", path: "/api/boxes", want: "GET /api/boxes is not described"},
		"unknown method":  {method: "PATCH", path: "/api/sandboxes", want: "PATCH /api/sandboxes is not described"},
		"unknown query":   {method: "GET", path: "/api/sandboxes?user=x", want: "the query has user"},
		"missing query":   {method: "GET", path: "/api/sandboxes/x/files/stat", want: "the query lacks path"},
		"unknown field":   {method: "POST", path: "/api/sandboxes", body: `{"cpus":1}`, want: "the body.cpus is not described"},
		"field of field":  {method: "POST", path: "/api/sandboxes", body: `{"network":{"hosts":[]}}`, want: "the body.network.hosts is not described"},
		"missing field":   {method: "POST", path: "/api/sandboxes/x/code", body: `{}`, want: "the body.code is missing"},
		"wrong type":      {method: "POST", path: "/api/sandboxes/x/renew", body: `{"timeout_minutes":"1"}`, want: "the body.timeout_minutes is of the type string and not null or number"},
		"wrong in a list": {method: "POST", path: "/api/sandboxes", body: `{"ports":[1.5]}`, want: "the body.ports[] is of the type number"},
		"none of both":    {method: "POST", path: "/api/sandboxes/x/execute", body: `{"command":1}`, want: "of no form"},
		"wrong header":    {method: "GET", path: "/api/stats", headers: []string{"Idempotency-Key", "k"}, want: "the header Idempotency-Key"},
		"wrong media":     {method: "PUT", path: "/api/sandboxes/x/files?path=f", body: "{}", want: `a body of the type "application/json"`},
		"wrong answer":    {method: "GET", path: "/api/stats", headers: []string{"Accept", "text/event-stream"}, want: `an answer of the type "text/event-stream"`},
		"no JSON":         {method: "POST", path: "/api/sandboxes", body: `{`, want: "the body: unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			s := wiretest.Serve(t)
			ask(t, s, tt.method, tt.path, tt.body, tt.headers...)
			got := s.Faults()
			if tt.want == "" && len(got) != 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
				t.Errorf("faults %q, want %q", got, tt.want)
			}
		})
	}
}

// TestAnswers: they have all that is described.
func TestAnswers(t *testing.T) {
	s := wiretest.Serve(t)
	var got any
	if err := json.Unmarshal([]byte(ask(t, s, "POST", "/api/sandboxes/x/snapshot", `{"name":"n"}`)), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"snapshot_id": "7", "session_id": "7", "name": "7", "node_id": "7", "provider": "7", "template": "7", "size_bytes": 1.0, "tenant": "7", "created_at": "2026-01-02T03:04:05Z",
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Error(diff)
	}
	events := ask(t, s, "GET", "/api/sandboxes/x/processes/1", "", "Accept", "text/event-stream")
	if !strings.HasPrefix(events, "event: stdout\ndata: {\"offset\":0,\"data\":\"7\"}\n\nevent: stderr\n") || !strings.Contains(events, "event: exit\ndata: {\"cost_estimate\":{") {
		t.Errorf("events:\n%s", events)
	}
	if file := ask(t, s, "GET", "/api/sandboxes/x/files?path=f", ""); file != "sample" {
		t.Errorf("a file is %q", file)
	}
	if diff := cmp.Diff([]string{"GET /api/sandboxes/{id}/files", "GET /api/sandboxes/{id}/processes/{pid}", "POST /api/sandboxes/{id}/snapshot"}, s.Asked()); diff != "" {
		t.Error(diff)
	}
}
