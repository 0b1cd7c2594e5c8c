package msbapi_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/intake"
	"github.com/cove-sandbox/cove/internal/msbapi"
)

// TestScopeBeforeBody: a key that no method is for is refused before a byte of the
// body has come, and the journal has it.
func TestScopeBeforeBody(t *testing.T) {
	r := serve(t)
	for key, length := range map[string]int{countKey: 1000, lookKey: 5 << 20} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.server.Listener.Addr().String())
		must(t, err)
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", msbapi.RPCPath, key, length)
		must(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		must(t, err)
		_, _ = resp.Body.Close(), conn.Close()
		if want := map[string]int{countKey: http.StatusForbidden, lookKey: http.StatusRequestEntityTooLarge}[key]; resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", key, resp.StatusCode, want)
		}
	}
	denied := 0
	for e, err := range r.engine.As(principals[allKey]).Admin().Events(t.Context(), cove.EventFilter{}) {
		must(t, err)
		if e.Principal == "count" && e.Effect == cove.Deny {
			denied++
		}
	}
	if denied != 1 {
		t.Errorf("the journal has %d lines about it", denied)
	}
}

// TestBodiesOfAKey: a key whose bodies fill its share is told to come back, others are
// served, and afterwards nothing is left.
func TestBodiesOfAKey(t *testing.T) {
	r := serve(t)
	body := `{"jsonrpc":"2.0","method":"sandbox.metrics.get","params":{"namespace":"*"},"id":1}`
	full := r.bodies.Body(principals[allKey])
	must(t, full.Take(t.Context(), 10<<20))
	if status, text := r.post(allKey, body); status != http.StatusTooManyRequests || !strings.Contains(text, "that are under way hold 10m") {
		t.Errorf("%d %s", status, text)
	}
	if status, text := r.post(otherKey, body); status != http.StatusOK {
		t.Errorf("another key: %d %s", status, text)
	}
	full.Free()
	if status, text := r.post(allKey, body); status != http.StatusOK {
		t.Errorf("afterwards: %d %s", status, text)
	}
	whole := r.bodies.Body(principals[allKey])
	must(t, whole.Take(t.Context(), 10<<20))
	whole.Free()
	if status, text := r.post(allKey, `{"params":[`+strings.Repeat("0,", intake.MaxValues)+`0]}`); status != http.StatusBadRequest || !strings.Contains(text, "65536 values") {
		t.Errorf("many values: %d %s", status, text)
	}
}
