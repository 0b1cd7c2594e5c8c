package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/httpapi"
	"github.com/cove-sandbox/cove/internal/intake"
)

// TestHalfSentBodies: bodies that never come whole hold what arrived until the share
// of their key is used up. Then the key is refused with the bound and when to come
// back, and once they are gone nothing is left.
func TestHalfSentBodies(t *testing.T) {
	t.Parallel()
	bodies := intake.New()
	tester := cove.Principal{Name: "tester", Tenant: "acme"}
	r := serve(t, func(c *httpapi.Config) { c.Bodies = bodies })
	r.fake.exec = func(context.Context, cove.ExecRequest) (*cove.Execution, error) { return &cove.Execution{}, nil }
	const half = intake.LargestJSON - 1<<20
	var held []net.Conn
	for range 2 {
		conn := r.raw(fmt.Sprintf("POST /api/sandboxes/x/execute HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", secret, intake.LargestJSON))
		defer conn.Close()
		held = append(held, conn)
		_, _ = io.WriteString(conn, strings.Repeat(" ", half)) // the second one is cut off
	}
	a := r.send("POST", "/api/sandboxes/x/execute", strings.Repeat(" ", half)+`{"command":"x"}`)
	if p := a.problem(t); a.status != 429 || p.Code != cove.Exhausted || p.Reason != cove.ReasonRateLimited || a.header.Get("Retry-After") != "1" ||
		!strings.Contains(p.Error, "this key that are under way hold 10m") {
		t.Errorf("over the share: %d %s", a.status, a.body)
	}
	for _, conn := range held {
		_ = conn.Close()
	}
	whole := bodies.Body(tester)
	for deadline := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		err := whole.Take(t.Context(), 10<<20)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("something is left: %v", err)
		}
	}
	whole.Free()
	if a := r.send("POST", "/api/sandboxes/x/execute", strings.Repeat(" ", half)+`{"command":"x","stdin":"y"}`); a.status != 200 {
		t.Errorf("afterwards: %d %s", a.status, a.body)
	}
}

// TestLengthBeforeBody: a body that is announced as too long is refused before a byte
// of it has come.
func TestLengthBeforeBody(t *testing.T) {
	t.Parallel()
	r := serve(t, func(c *httpapi.Config) { c.Stall = 10 * time.Millisecond })
	for path, limit := range map[string]int{"/api/sandboxes": 1 << 20, "/api/code": 8 << 20, "/api/tools/run_python_code": 8 << 20, "/api/sandboxes/x/execute": 8 << 20, "/api/runs": 4 << 20} {
		conn := r.raw(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", path, secret, limit+1))
		if got := statusLine(t, conn); got != 413 {
			t.Errorf("%s: %d", path, got)
		}
		_ = conn.Close()
	}
}

// TestManyElements: JSON with more values than any request has is refused before it is
// decoded, with the bound.
func TestManyElements(t *testing.T) {
	t.Parallel()
	r := serve(t)
	a := r.send("POST", "/api/sandboxes/x/execute", `{"command":[`+strings.Repeat(`"",`, 2<<20)+`""]}`)
	if p := a.problem(t); a.status != 413 || p.Code != cove.Invalid || !strings.Contains(p.Error, "more than 65536 values and names") || p.Remedy == "" {
		t.Errorf("%d %.300s", a.status, a.body)
	}
}
