package e2bapi_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/e2bapi"
)

// TestUnsentBody: who is refused and never sends what he announced is answered, and
// holds no connection.
func TestUnsentBody(t *testing.T) {
	r := serve(t, func(c *e2bapi.Config) { c.BodyTime = 50 * time.Millisecond })
	id := r.open(cove.Spec{})
	for path, header := range map[string]string{
		"/v2/sandboxes":         "X-API-Key: wrong",
		"/process.Process/List": fmt.Sprintf("E2b-Sandbox-Id: %s\r\nE2b-Sandbox-Port: 49983\r\nX-Access-Token: wrong", id),
	} {
		conn := must((&net.Dialer{}).DialContext(t.Context(), "tcp", r.server.Listener.Addr().String()))(t)
		if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\n%s\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n", path, header); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
		_ = resp.Body.Close()
		_ = conn.Close()
	}
}

// TestNoSuchID: what can be no id is not remembered, however often it comes.
func TestNoSuchID(t *testing.T) {
	r := serve(t)
	long := cove.ID(strings.Repeat("x", 32<<10))
	for range int(e2bapi.OpenBurst) * 2 {
		if status, body, _ := r.read(r.inside(t.Context(), long, 49983, "GET", "/health", nil)); status != http.StatusBadGateway || len(body) > 1000 {
			t.Fatalf("%d %.100s", status, body)
		}
	}
}

// TestSignedNameWithColons: a link for a file whose name somebody chose is no link for
// another one.
func TestSignedNameWithColons(t *testing.T) {
	r := serve(t)
	id := r.open(cove.Spec{})
	q := link("x:write:y", "read", "user", r.token(id), 0)
	q.Set("path", "x")
	q.Set("username", "y:read:user")
	req := r.inside(t.Context(), id, 49983, "POST", "/files?"+q.Encode(), strings.NewReader("evil"), "Content-Type", octets, "X-Access-Token", "")
	req.SetBasicAuth("user", "")
	if status, body, _ := r.read(req); status != http.StatusUnauthorized || r.hasFile(id, "x") {
		t.Errorf("%d %s", status, body)
	}
}

// TestManyWatches: a sandbox is not watched without end.
func TestManyWatches(t *testing.T) {
	r := serve(t)
	id := r.open(cove.Spec{})
	for range e2bapi.MaxFeeds {
		w := r.watch(t.Context(), id, `{"path":""}`)
		defer w.body.Close()
		if m := w.next(); m.end {
			t.Fatalf("it ends with %+v", m.Error)
		}
	}
	w := r.watch(t.Context(), id, `{"path":""}`)
	defer w.body.Close()
	if m := w.next(); !m.end || m.Error == nil || m.Error.Code != "resource_exhausted" {
		t.Errorf("one more: %+v", m)
	}
}
