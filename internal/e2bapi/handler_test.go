package e2bapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/e2bapi"
)

func TestToken(t *testing.T) {
	const id = "06gy2sd2n6kfbsfb07wpkkzyf4"
	secret := []byte("a secret of thirty-two bytes, or so")
	access := e2bapi.Token(secret, "access", id, "tester")
	if access != e2bapi.Token(bytes.Clone(secret), "access", id, "tester") {
		t.Error("the token of a sandbox is not the same after a start")
	}
	if caller, ok := e2bapi.CallerOf(secret, "access", id, access); !ok || caller != "tester" {
		t.Errorf("the token is of %q, %t", caller, ok)
	}
	name, sum, _ := strings.Cut(access, ".")
	_, sumOfOther, _ := strings.Cut(e2bapi.Token(secret, "access", id, "other"), ".")
	for what, other := range map[string]string{
		"another kind":    e2bapi.Token(secret, "traffic", id, "tester"),
		"another id":      e2bapi.Token(secret, "access", "06gy2sd2n6kfbsfb07wpkkzyf5", "tester"),
		"another caller":  name + "." + sumOfOther,
		"another secret":  e2bapi.Token([]byte("x"), "access", id, "tester"),
		"a changed name":  "dGVzdGVz." + sum,
		"no name":         "." + sum,
		"no sum":          name + ".",
		"a sum cut off":   access[:len(access)-1],
		"a sum too long":  access + "0",
		"not base64":      "!" + access,
		"padded":          name + "=." + sum,
		"an endless name": strings.Repeat("A", 1<<20) + "." + sum,
		"nothing":         "",
	} {
		if caller, ok := e2bapi.CallerOf(secret, "access", id, other); ok {
			t.Errorf("%s: good for %q", what, caller)
		}
	}
}

func TestOwns(t *testing.T) {
	face := e2bapi.New(e2bapi.Config{Domain: "cove.test:8443"})
	for target, want := range map[string]bool{
		"http://h/sandboxes": true, "http://h/sandboxes/x": true, "http://h/v2/sandboxes": true, "http://h/v3/templates": true,
		"http://h/templates/x": true, "http://h/files": true, "http://h/execute": true, "http://h/contexts/x": true,
		"http://h/process.Process/Start": true, "http://h/filesystem.Filesystem/Stat": true, "http://h/secrets": true, "http://h/volumes": true,
		"http://h/sandboxesx": false, "http://h/health": false, "http://h/metrics": false, "http://h/api/v1/health": false, "http://h/": false, "http://h/v1/x": false,
		"http://api.cove.test/x": true, "http://49983-x.COVE.test.:8443/health": true, "http://cove.test/health": false, "http://xcove.test/health": false,
	} {
		if got := face.Owns(httptest.NewRequest(http.MethodGet, target, nil)); got != want {
			t.Errorf("%s: %v", target, got)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "http://h/health", nil)
	r.Header.Set("E2b-Sandbox-Id", "x")
	if !face.Owns(r) {
		t.Error("a request with the header of a sandbox is not ours")
	}
}

// TestPlaces: the host tells the sandbox where there is a domain, and headers elsewhere.
func TestPlaces(t *testing.T) {
	r := serve(t, func(c *e2bapi.Config) {
		c.Domain = "cove.test:8443"
		c.Ports = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "port of "+r.Host) })
	})
	id := r.create(`{}`)
	other := r.create(`{}`)
	for _, c := range []struct {
		name, host, path string
		header           []string
		status           int
		say              string
	}{
		{"host", "49983-%s.cove.test", "/health", nil, 204, ""},
		{"host with a port and a dot", "49983-%s.Cove.Test.:8443", "/health", nil, 204, ""},
		{"host and header", "49983-%s.cove.test", "/health", []string{"E2b-Sandbox-Id", string(id), "E2b-Sandbox-Port", "49983"}, 204, ""},
		{"host and another header", "49983-%s.cove.test", "/health", []string{"E2b-Sandbox-Id", string(other), "E2b-Sandbox-Port", "49983"}, 400, "another sandbox"},
		{"control", "api.cove.test", "/sandboxes/%s", []string{"X-API-Key", goodKey}, 200, "sandboxID"},
		{"control without a key", "api.cove.test", "/sandboxes/%s", nil, 401, "no valid key"},
		{"control with the header of a sandbox", "api.cove.test", "/health", []string{"E2b-Sandbox-Id", string(id), "E2b-Sandbox-Port", "49983"}, 404, "no sandbox has this host"},
		{"another port", "3000-%s.cove.test", "/x//y", nil, 200, "port of 3000-"},
		{"another port of nobody", "3000-x.cove.test", "/", nil, 502, "The sandbox was not found"},
		{"no port", "%s.cove.test", "/health", nil, 404, "no sandbox has this host"},
		{"bad port", "99999-%s.cove.test", "/health", nil, 404, "no sandbox has this host"},
		{"below", "x.49983-%s.cove.test", "/health", nil, 404, "no sandbox has this host"},
		{"no id", "49983-.cove.test", "/health", nil, 404, "no sandbox has this host"},
		{"not an id", "49983-nobody.cove.test", "/health", nil, 502, "The sandbox was not found"},
		{"unclean", "49983-%s.cove.test", "//health", nil, 404, "there is no GET"},
		{"nothing there", "49983-%s.cove.test", "/envs", nil, 404, "there is no GET"},
		{"nothing there, interpreter", "49999-%s.cove.test", "/envs", nil, 404, "there is no GET"},
		{"elsewhere, header", "elsewhere", "/health", []string{"E2b-Sandbox-Id", string(id), "E2b-Sandbox-Port", "49983"}, 204, ""},
		{"elsewhere, no port", "elsewhere", "/health", []string{"E2b-Sandbox-Id", string(id)}, 400, "E2b-Sandbox-Id"},
		{"elsewhere, empty id", "elsewhere", "/health", []string{"E2b-Sandbox-Id", "", "E2b-Sandbox-Port", "49983"}, 400, "E2b-Sandbox-Id"},
		{"elsewhere, two", "elsewhere", "/health", []string{"E2b-Sandbox-Id", string(id), "E2b-Sandbox-Id", string(other)}, 400, "more than once"},
	} {
		fill := func(text string) string { return strings.ReplaceAll(text, "%s", string(id)) }
		req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, r.server.URL+fill(c.path), nil))(t)
		req.Host = fill(c.host)
		for i := 0; i+1 < len(c.header); i += 2 {
			req.Header.Add(c.header[i], c.header[i+1])
		}
		if got, text, _ := r.read(req); got != c.status || !strings.Contains(text, c.say) {
			t.Errorf("%s: %d %s; want %d with %q", c.name, got, text, c.status, c.say)
		}
	}
}

// TestAccess: a sandbox is open to who shows its own token.
func TestAccess(t *testing.T) {
	r := serve(t)
	id, other := r.create(`{}`), r.create(`{}`)
	for _, token := range []string{"", "x", r.token(other), r.tokenOf("traffic", id, "tester"), r.token(id)[:31], r.token(id) + "0", strings.ToUpper(r.token(id))} {
		for _, c := range [][2]string{{"POST", "/process.Process/List"}, {"POST", "/filesystem.Filesystem/Stat"}} {
			status, text, _ := r.read(r.inside(t.Context(), id, 49983, c[0], c[1], strings.NewReader("{}"), "Content-Type", "application/json", "X-Access-Token", token))
			if status != http.StatusUnauthorized || !strings.Contains(text, `"code":"unauthenticated"`) {
				t.Errorf("%s with token %q: %d %s", c[1], token, status, text)
			}
		}
	}
	for range int(e2bapi.OpenBurst) * 10 {
		status, text, h := r.read(r.inside(t.Context(), id, 49983, "GET", "/health", nil, "X-Access-Token", "x"))
		if status == http.StatusTooManyRequests {
			if h.Get("Retry-After") != "1" || !strings.Contains(text, "access token") {
				t.Errorf("%v %s", h, text)
			}
			return
		}
	}
	t.Error("a sandbox is asked without end for who shows nothing")
}

// TestPanic: what goes wrong in one call is one call's, and is logged.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	r := serve(t, func(c *e2bapi.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c.Platform = func(cove.Principal) cove.Platform { return nil }
	})
	r.refuses(http.StatusInternalServerError, "internal error", "GET", "/v2/sandboxes", "")
	r.refuses(http.StatusUnauthorized, "", "GET", "/v2/sandboxes", "", "X-API-Key", "x")
	if !strings.Contains(log.String(), "nil pointer") {
		t.Errorf("the log is %q", log.String())
	}
}

// TestTold: who counts calls hears of each, and a caller who must not go on is stopped.
func TestTold(t *testing.T) {
	ends := make(chan e2bapi.Ending, 16)
	stopped := make(chan struct{}, 16)
	r := serve(t, func(c *e2bapi.Config) {
		c.Begin = func(r *http.Request, _ string) context.Context { return r.Context() }
		c.End = func(_ context.Context, e e2bapi.Ending) { ends <- e }
		c.Watch = func(ctx context.Context, _ cove.Principal) (context.Context, func()) {
			return ctx, func() { stopped <- struct{}{} }
		}
	})
	r.wants(http.StatusOK, nil, "GET", "/v2/sandboxes", "")
	<-stopped
	if e := <-ends; e.Route != "GET /v2/sandboxes" || e.Status != http.StatusOK || e.Err != nil {
		t.Errorf("%+v", e)
	}
	r.refuses(http.StatusNotFound, "", "GET", "/sandboxes/x", "")
	if e := <-ends; e.Route != "GET /sandboxes/{id}" || e.Status != http.StatusNotFound || cove.CodeOf(e.Err) != cove.NotFound {
		t.Errorf("%+v", e)
	}
}

// TestCut: a client that goes away in the middle of a body leaves nothing behind.
func TestCut(t *testing.T) {
	ends := make(chan e2bapi.Ending, 16)
	r := serve(t, func(c *e2bapi.Config) { c.End = func(_ context.Context, e e2bapi.Ending) { ends <- e } })
	id := r.create(`{}`)
	<-ends
	for path, header := range map[string]string{
		"/v2/sandboxes":          "X-API-Key: " + goodKey,
		"/process.Process/Start": fmt.Sprintf("E2b-Sandbox-Id: %s\r\nE2b-Sandbox-Port: 49983\r\nX-Access-Token: %s", id, r.token(id)),
	} {
		conn := must((&net.Dialer{}).DialContext(t.Context(), "tcp", r.server.Listener.Addr().String()))(t)
		_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\n%s\r\nContent-Type: application/connect+json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"tem", path, header)
		if err := errors.Join(err, conn.Close()); err != nil {
			t.Fatal(err)
		}
		if e := <-ends; e.Err == nil {
			t.Errorf("half a body of %s: %+v", path, e)
		}
	}
	if all := must(collect(r))(t); len(all) != 1 {
		t.Errorf("half a body made a session: %d", len(all))
	}
}

// TestDrain: what a client goes on to send after it was answered is not the next call.
func TestDrain(t *testing.T) {
	r := serve(t)
	for _, size := range []int{0, 10, 64 << 10, 1 << 20} {
		req := r.inside(t.Context(), cove.NewID(), 49983, "POST", "/process.Process/Nothing", io.MultiReader(strings.NewReader(strings.Repeat("GET / HTTP/1.1\r\n\r\n", size/18))), "Content-Type", "application/connect+json")
		resp, err := r.server.Client().Do(req)
		if err == nil {
			if resp.StatusCode != http.StatusNotFound {
				t.Errorf("%d bytes: %d", size, resp.StatusCode)
			}
			resp.Body.Close()
		} else if size <= 64<<10 {
			t.Errorf("%d bytes: %v", size, err)
		}
		r.wants(http.StatusOK, nil, "GET", "/v2/sandboxes", "")
	}
}

func TestPaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p e2bapi.Paces
		id := cove.NewID()
		for range int(e2bapi.OpenBurst) {
			if err := p.Take(id); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Take(id); cove.ReasonOf(err) != cove.ReasonRateLimited {
			t.Errorf("one too many: %v", err)
		}
		if err := p.Take(cove.NewID()); err != nil {
			t.Errorf("another: %v", err)
		}
		<-time.After(100 * time.Millisecond)
		if err := p.Take(id); err != nil {
			t.Errorf("a moment later: %v", err)
		}
		for range 2 * e2bapi.MaxPaces {
			_ = p.Take(cove.NewID())
			if p.Len() > e2bapi.MaxPaces {
				t.Fatalf("%d are remembered", p.Len())
			}
		}
		<-time.After(time.Minute)
		for range e2bapi.MaxPaces {
			_ = p.Take(cove.NewID())
		}
		if p.Len() > e2bapi.MaxPaces {
			t.Errorf("%d are remembered", p.Len())
		}
	})
}

func TestMeters(t *testing.T) {
	var m e2bapi.Meters
	start := time.Now()
	s := &cove.Session{ID: cove.NewID(), CreatedAt: start}
	for _, c := range []struct{ cpu, after, want float64 }{
		{0, 0, 0}, {10, 20, 0.5}, {10, 30, 0}, {30, 40, 2}, {5, 50, 0.1}, {5, 50, 0},
	} {
		at := start.Add(time.Duration(c.after * float64(time.Second)))
		if got := m.Share(s, time.Duration(c.cpu*float64(time.Second)), at); got != c.want {
			t.Errorf("%v seconds of CPU time after %v: %v; want %v", c.cpu, c.after, got, c.want)
		}
	}
	for range 2 * e2bapi.MaxMeters {
		m.Share(&cove.Session{ID: cove.NewID(), CreatedAt: start}, 0, start)
	}
	if m.Len() > e2bapi.MaxMeters {
		t.Errorf("%d are remembered", m.Len())
	}
}

func TestProblems(t *testing.T) {
	for _, code := range cove.Codes() {
		status, word, rpc, text := e2bapi.Problem(cove.Errorf(code, "a message").Remedy("a remedy"))
		if status < 400 || word == "" || rpc < 400 || text != "a message; a remedy" {
			t.Errorf("%s: %d %q %d %q", code, status, word, rpc, text)
		}
	}
	if status, _, _, text := e2bapi.Problem(errors.New("a secret path")); status != 500 || strings.Contains(text, "secret") {
		t.Errorf("%d %q", status, text)
	}
	for _, reason := range []string{cove.ReasonTenantDisk, cove.ReasonDiskReserve} {
		if status, word, rpc, _ := e2bapi.Problem(cove.Errorf(cove.Exhausted, "x").Reason(reason)); status != 507 || word != "resource_exhausted" || rpc != 429 {
			t.Errorf("%s: %d %q %d", reason, status, word, rpc)
		}
	}
	if status, word, rpc, _ := e2bapi.Problem(cove.Errorf(cove.Unavailable, "x").Reason(cove.ReasonOutcomeUnknown)); status != 503 || word != "unknown" || rpc != 500 {
		t.Errorf("what may have been done: %d %q %d", status, word, rpc)
	}
	if _, word, _, text := e2bapi.Problem(cove.Errorf(cove.NotFound, "x").Reason(cove.ReasonSessionExpired)); word != "unavailable" || text != "The sandbox was not found" {
		t.Errorf("%q %q", word, text)
	}
	for details, want := range map[any]int{nil: 1, 5: 5, 2.5: 3, -1: 1, 1e9: 60, "x": 1} {
		if got := e2bapi.WaitOf(cove.Errorf(cove.Exhausted, "x").With("retry_after", details)); got != want {
			t.Errorf("%v: wait %d; want %d", details, got, want)
		}
	}
}

func FuzzCreate(f *testing.F) {
	for _, body := range []string{
		`{"templateID":"base"}`, `{"timeout":1e400}`, `{"timeout":0.1,"metadata":{"":""}}`, `{"network":{"allowOut":["a"],"denyOut":["0.0.0.0/0"]}}`,
		`{"autoPause":true,"autoPauseMemory":false,"autoResume":{"enabled":true},"envVars":{"A":"b"}}`, `{"network":null,"mcp":null,"iam":{}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := e2bapi.SpecOf(body)
		if err != nil {
			if c := cove.CodeOf(err); c != cove.Invalid && c != cove.Unsupported {
				t.Errorf("%q: %v", body, err)
			}
			return
		}
		if err := s.Validate(); err != nil || !s.FixedEnd || s.Idle < time.Second || len(s.Volumes) > 0 {
			t.Errorf("%q gives %+v, %v", body, s, err)
		}
	})
}
