package httpapi_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/httpapi"
	"github.com/cove-sandbox/cove/internal/intake"
	"github.com/cove-sandbox/cove/internal/wire"
)

// problem reads the answer of a request that went wrong.
func (a answer) problem(t *testing.T) wire.Problem {
	t.Helper()
	var p wire.Problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.header.Get("Content-Type") != wire.ProblemType {
		t.Fatalf("the answer is no problem: %d %s %q", a.status, a.header.Get("Content-Type"), a.body)
	}
	if p.Status != a.status || p.Type != "urn:cove:problem:"+string(p.Code) || p.Title == "" || p.Error == "" || p.RequestID != a.header.Get("X-Request-Id") {
		t.Errorf("the problem does not hold together: %d %+v", a.status, p)
	}
	return p
}

func TestEveryCodeHasItsStatus(t *testing.T) {
	want := map[cove.Code]int{
		cove.Invalid: 400, cove.Unauthenticated: 401, cove.Denied: 403, cove.NotFound: 404, cove.Conflict: 409, cove.Exhausted: 429,
		cove.Unsupported: 501, cove.Unavailable: 503, cove.Timeout: 504, cove.Canceled: httpapi.StatusClientGone, cove.Internal: 500,
	}
	r := serve(t)
	for _, code := range cove.Codes() {
		r.fake.fail = cove.Errorf(code, "no")
		a := r.send(http.MethodGet, "/api/sandboxes/x", "")
		if p := a.problem(t); a.status != want[code] || p.Code != code {
			t.Errorf("%s is answered with %d and code %s, want %d", code, a.status, p.Code, want[code])
		}
	}
	r.fake.fail = &cove.Error{Code: "made_up", Message: "x"}
	if a := r.send(http.MethodGet, "/api/sandboxes/x", ""); a.status != 500 {
		t.Errorf("a code that does not exist is answered with %d", a.status)
	}
}

func TestReasonsWithAStatusOfTheirOwn(t *testing.T) {
	r := serve(t)
	for _, c := range []struct {
		err    *cove.Error
		status int
	}{
		{cove.Errorf(cove.Invalid, "x").Reason(cove.ReasonFileTooLarge), 413},
		{cove.Errorf(cove.Exhausted, "x").Reason(cove.ReasonWorkspaceFull), 507},
		{cove.Errorf(cove.Exhausted, "x").Reason(cove.ReasonTenantDisk), 507},
		{cove.Errorf(cove.Exhausted, "x").Reason(cove.ReasonDiskReserve), 507},
		{cove.Errorf(cove.Exhausted, "x").Reason(cove.ReasonQueueFull), 429},
		{cove.Errorf(cove.NotFound, "x").Reason(cove.ReasonSessionExpired), 404},
	} {
		r.fake.fail = c.err
		a := r.send(http.MethodPut, "/api/sandboxes/x/files?path=f", "content")
		if p := a.problem(t); a.status != c.status || p.Reason != cove.ReasonOf(c.err) {
			t.Errorf("%v is answered with %d %+v", c.err, a.status, p)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	r := serve(t)
	for want, value := range map[string]any{"1": nil, "7": 7, "3": 2.1, "60": time.Minute} {
		err := cove.Errorf(cove.Exhausted, "full").Reason(cove.ReasonCapacity)
		if value != nil {
			err = err.With("retry_after", value)
		}
		r.fake.fail = err
		a := r.send(http.MethodPost, "/api/sandboxes", "{}")
		if got := a.header.Get("Retry-After"); a.status != 429 || got != want {
			t.Errorf("%v: %d with Retry-After %q, want %s", value, a.status, got, want)
		}
	}
}

// TestRetryAfterOfWhatIsAway: it is said where somebody knows it, and comes out at
// the other end.
func TestRetryAfterOfWhatIsAway(t *testing.T) {
	r := serve(t)
	for want, value := range map[string]any{"": nil, "7": 7, "2": 1.5} {
		err := cove.Errorf(cove.Unavailable, "the node is away").Reason(cove.ReasonNodeAway)
		if value != nil {
			err = err.With("retry_after", value)
		}
		r.fake.fail = err
		a := r.send(http.MethodGet, "/api/stats", "")
		if got := a.header.Get("Retry-After"); a.status != 503 || got != want {
			t.Errorf("%v: %d with Retry-After %q, want %q", value, a.status, got, want)
		}
		_, got := r.client.Admin().Stats(t.Context())
		if e, ok := errors.AsType[*cove.Error](got); !ok || e.Details["retry_after"] != value || cove.ReasonOf(got) != cove.ReasonNodeAway {
			t.Errorf("the error came back as %v", got)
		}
	}
}

// TestOutcomeUnknown: what may have been done is not to be asked again after a while.
func TestOutcomeUnknown(t *testing.T) {
	r := serve(t)
	r.fake.fail = cove.Errorf(cove.Unavailable, "no answer").Reason(cove.ReasonOutcomeUnknown).Remedy("look first")
	a := r.send(http.MethodPost, "/api/sandboxes/x/execute", `{"command":"true"}`)
	if p := a.problem(t); a.status != 503 || a.header.Get("Retry-After") != "" || p.Reason != "outcome_unknown" || p.Remedy != "look first" {
		t.Errorf("it is answered with %d, Retry-After %q, %+v", a.status, a.header.Get("Retry-After"), p)
	}
}

func TestDetailsThatAreNotJSON(t *testing.T) {
	r := serve(t)
	r.fake.fail = cove.Errorf(cove.Conflict, "x").With("broken", func() {})
	if p := r.send(http.MethodGet, "/api/stats", "").problem(t); p.Code != cove.Conflict || p.Details != nil {
		t.Errorf("the problem is %+v", p)
	}
}

func TestUnknownRoutesAndMethods(t *testing.T) {
	r := serve(t)
	for _, c := range []struct {
		method, path string
		status       int
		reason       string
	}{
		{"GET", "/api/nothing", 404, "no_such_route"},
		{"GET", "/api", 404, "no_such_route"},
		{"GET", "/api/sandboxes/x/y/z", 404, "no_such_route"},
		{"GET", "/api//sandboxes", 404, "no_such_route"},
		{"GET", "/api/sandboxes//files", 404, "no_such_route"},
		{"GET", "/api/../api/sandboxes", 404, "no_such_route"},
		{"GET", "/api/sandboxes/x//", 404, "no_such_route"},
		{"PATCH", "/api/sandboxes", 405, "no_such_method"},
		{"DELETE", "/api/sandboxes/", 405, "no_such_method"},
		{"HEAD", "/api/sandboxes/x/processes/1", 405, ""},
		{"BREW", "/health", 405, "no_such_method"},
	} {
		a := r.send(c.method, c.path, "")
		if a.status != c.status || c.reason != "" && a.problem(t).Reason != c.reason {
			t.Errorf("%s %s: %d %q", c.method, c.path, a.status, a.body)
		}
		if c.status == 405 && a.header.Get("Allow") == "" {
			t.Errorf("%s %s does not say what is allowed", c.method, c.path)
		}
	}
	if n := len(r.fake.calls); n != 0 {
		t.Errorf("the platform was called %d times", n)
	}
}

func TestTrailingSlashes(t *testing.T) {
	r := serve(t)
	for _, path := range []string{
		"/api/sandboxes/", "/api/sandboxes/a%2Fb/", "/api/stats/", "/health/", "/api/sandboxes/x/files/stat/?path=f", "/api/snapshots/", "/openapi.json/",
	} {
		if a := r.send("GET", path, ""); a.status != 200 {
			t.Errorf("%s: %d %q", path, a.status, a.body)
		}
	}
	if got := r.fake.seen(cove.SessionGet); len(got) != 1 || got[0].Args[0] != cove.ID("a/b") {
		t.Errorf("the escaped id arrived as %v", got)
	}
}

func TestQueriesThatDoNotFit(t *testing.T) {
	r := serve(t)
	for path, field := range map[string]string{
		"/api/sandboxes?color=red":                       "color",
		"/api/sandboxes?limit=0":                         "limit",
		"/api/sandboxes?limit=-1":                        "limit",
		"/api/sandboxes?limit=1001":                      "limit",
		"/api/sandboxes?limit=99999999999999999999":      "limit",
		"/api/sandboxes?limit=ten":                       "limit",
		"/api/sandboxes?limit=1&limit=2":                 "limit",
		"/api/sandboxes?status=sleeping":                 "status",
		"/api/sandboxes?label=novalue":                   "label",
		"/api/sandboxes/x/processes?cursor=abc":          "cursor",
		"/api/sandboxes/x/processes?cursor=-5":           "cursor",
		"/api/events?cursor=abc":                         "cursor",
		"/api/events?follow=perhaps":                     "follow",
		"/api/sandboxes/x/files":                         "path",
		"/api/sandboxes/x/files?path=":                   "path",
		"/api/sandboxes/x/files?path=f&offset=-1":        "offset",
		"/api/sandboxes/x/output/o?stream=stdlog":        "stream",
		"/api/sandboxes/x/output/o?limit=1e3":            "limit",
		"/api/sandboxes/x/processes/1?offset=-1":         "offset",
		"/api/sandboxes/x/ports/0/connect":               "port",
		"/api/sandboxes/x/ports/70000/connect":           "port",
		"/api/sandboxes/x/ports/http/connect":            "port",
		"/api/sandboxes/x/terminal?cols=0":               "cols",
		"/api/sandboxes/x/terminal?cols=65536":           "cols",
		"/api/stats?" + strings.Repeat("x", 300) + "=1":  "",
		"/api/sandboxes/x/files/list?path=f&depth=deep":  "depth",
		"/api/sandboxes/x/files/list?path=f&cursor=huge": "cursor",
	} {
		a := r.send("GET", path, "")
		p := a.problem(t)
		if a.status != 400 || field != "" && p.Details["field"] != field {
			t.Errorf("%s: %d %+v", path, a.status, p)
		}
	}
	if a := r.send("GET", "/api/sandboxes?a;b=%zz", ""); a.status != 400 {
		t.Errorf("a malformed query: %d", a.status)
	}
}

func TestBodiesThatDoNotFit(t *testing.T) {
	r := serve(t)
	execute, open := "/api/sandboxes/x/execute", "/api/sandboxes"
	for _, c := range []struct{ path, body, field string }{
		{execute, `{"command":`, ""},
		{execute, `{"command":"x"} {}`, ""},
		{execute, `["x"]`, ""},
		{execute, `"x"`, ""},
		{execute, "{\"command\":\"\xff\"}", ""},
		{execute, `{"command":"x","comand":"y"}`, "comand"},
		{execute, `{"command":"x","Command":"y"}`, "Command"},
		{execute, `{"command":"x","command":"y"}`, "command"},
		{execute, `{"command":7}`, "command"},
		{execute, `{"command":["x",7]}`, "command"},
		{execute, `{"command":"x","timeout":0}`, "timeout"},
		{execute, `{"command":"x","timeout":-1}`, "timeout"},
		{execute, `{"command":"x","timeout":1e300}`, "timeout"},
		{execute, `{"command":"x","timeout":1e999}`, "timeout"},
		{execute, `{"command":"x","timeout":"5"}`, "timeout"},
		{execute, `{"command":"x","timeout":1e-30}`, "timeout"},
		{execute, `{"command":"x","stdin":"a","stdin_base64":"YQ=="}`, "stdin"},
		{execute, `{"command":"x","stdin_base64":"%"}`, "stdin_base64"},
		{execute, `{"command":"x","max_output":"lots"}`, "max_output"},
		{execute, `{"command":"x","env":{"A":1}}`, "env.A"},
		{execute, `{"command":"x","env":[]}`, "env"},
		{execute, `{"command":"x","tty":{"cols":-1,"rows":1}}`, "tty.cols"},
		{execute, `{"command":"x","tty":{"cols":70000,"rows":1}}`, "tty.cols"},
		{execute, `{"command":"x","tty":{"cols":1.5,"rows":1}}`, "tty.cols"},
		{execute, `{"command":"x","background":"yes"}`, "background"},
		{open, `{"timeout_minutes":0}`, "timeout_minutes"},
		{open, `{"timeout_minutes":-0.5}`, "timeout_minutes"},
		{open, `{"lifetime_minutes":0}`, "lifetime_minutes"},
		{open, `{"memory_limit":"0"}`, "memory_limit"},
		{open, `{"memory_limit":-5}`, "memory_limit"},
		{open, `{"memory_limit":true}`, "memory_limit"},
		{open, `{"memory_limit":"a lot"}`, "memory_limit"},
		{open, `{"cpu_limit":"0"}`, "cpu_limit"},
		{open, `{"cpu_limit":"inf"}`, "cpu_limit"},
		{open, `{"pids_limit":0}`, "pids_limit"},
		{open, `{"pids_limit":1e3}`, "pids_limit"},
		{open, `{"workspace":{"size_mb":0}}`, "workspace.size_mb"},
		{open, `{"workspace":{"files":-1}}`, "workspace.files"},
		{open, `{"workspace":{"colour":"red"}}`, "workspace.colour"},
		{open, `{"network":{"mode":"none","allow":[1]}}`, "network.allow[0]"},
		{open, `{"volumes":[{"source":"/a"},{"target":5}]}`, "volumes[1].target"},
		{open, `{"ports":[99999999999999999999]}`, "ports[0]"},
		{open, `{"user_id":null,"metadata":"x"}`, "metadata"},
		{"/api/sandboxes/x/renew", `{"timeout_minutes":0}`, "timeout_minutes"},
		{"/api/sandboxes/x/code", `{"language":"python","code":"","timeout":0}`, "timeout"},
		{"/api/sandboxes/x/processes", `{"command":"x","timeout":0}`, "timeout"},
		{"/api/sandboxes/x/processes/1/signal", `{"signal":"NOPE"}`, "signal"},
		{"/api/keys", `{"scopes":["*"],"ttl_seconds":0}`, "ttl_seconds"},
		{"/api/keys", `{"scopes":["*"],"defaults":{"cpu_limit":"x"}}`, "cpu_limit"},
		{"/api/runs", `{"query_type":"sql","sql":"x","max_rows":0}`, "max_rows"},
		{"/api/runs", `{"query_type":"sql","sql":"x","max_output_bytes":-1}`, "max_output_bytes"},
		{"/api/runs", `{"query_type":"sql","sql":"x","timeout_seconds":0}`, "timeout_seconds"},
	} {
		a := r.send("POST", c.path, c.body)
		p := a.problem(t)
		if a.status != 400 || c.field != "" && (p.Details["field"] != c.field || !strings.HasPrefix(p.Error, c.field+":")) {
			t.Errorf("%s %s: %d %+v", c.path, c.body, a.status, p)
		}
	}
	if n := len(r.fake.calls); n != 0 {
		t.Errorf("the platform was called %d times", n)
	}
}

// TestNULTravels: what is wrong with a name is for the platform to say.
func TestNULTravels(t *testing.T) {
	r := serve(t)
	r.send("GET", "/api/sandboxes/x/files/stat?path=a%00b", "")
	r.send("POST", "/api/sandboxes", `{"user_id":"a\u0000b"}`)
	if got := r.fake.seen(cove.FileStat); len(got) != 1 || got[0].Args[1] != "a\x00b" {
		t.Errorf("the path arrived as %q", got)
	}
	if got := r.fake.seen(cove.SessionOpen); len(got) != 1 || got[0].Args[0].(cove.OpenRequest).Spec.User != "a\x00b" {
		t.Errorf("the user arrived as %q", got)
	}
}

func TestNoBodyIsAnEmptyOne(t *testing.T) {
	r := serve(t)
	for _, path := range []string{"/api/sandboxes", "/api/sandboxes/x/renew", "/api/sandboxes/x/snapshot", "/api/sandboxes/x/fork"} {
		if a := r.send("POST", path, "  "); a.status/100 != 2 {
			t.Errorf("%s: %d %q", path, a.status, a.body)
		}
	}
}

func TestBodyTooLarge(t *testing.T) {
	r := serve(t)
	for path, size := range map[string]int{"/api/sandboxes": 1 << 20, "/api/sandboxes/x/execute": 8 << 20} {
		body := `{"project_name":"` + strings.Repeat("x", size) + `"}`
		a := r.send("POST", path, body)
		if p := a.problem(t); a.status != 413 || p.Reason != intake.ReasonTooLarge || p.Code != cove.Invalid {
			t.Errorf("%s: %d %+v", path, a.status, p)
		}
	}
}

func TestHeaderTooLarge(t *testing.T) {
	r := serve(t)
	if a := r.send("GET", "/health", "", "X-Large", strings.Repeat("x", 1<<20)); a.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a huge header is answered with %d", a.status)
	}
	_, err := r.client.Processes(id).Output(t.Context(), "o", cove.OutputRange{Grep: strings.Repeat("x", 1<<20)})
	if !errors.Is(err, cove.Invalid) {
		t.Errorf("a huge pattern is answered with %v", err)
	}
}

func TestAnswerThatIsNotJSON(t *testing.T) {
	r := serve(t)
	r.fake.events = badEvents
	for _, accept := range []string{"application/json", "text/event-stream"} {
		a := r.send("GET", "/api/events", "", "Accept", accept)
		if a.status != 500 || a.problem(t).Code != cove.Internal {
			t.Errorf("%s: %d %q", accept, a.status, a.body)
		}
	}
	if _, err := length(r.client.Admin().Events(t.Context(), cove.EventFilter{})); !errors.Is(err, cove.Internal) {
		t.Error(err)
	}
}
