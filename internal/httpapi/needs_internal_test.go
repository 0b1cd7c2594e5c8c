package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

// takesBody reports whether a route that wants a key looks at a body.
func (r route) takesBody() bool { return !r.open && (r.body != nil || r.takes != "") }

// TestScopeBeforeBody: each route with a body refuses a key without the scope before a
// byte of the body has come, and asks for verbs that the platform has.
func TestScopeBeforeBody(t *testing.T) {
	t.Parallel()
	asked := make(chan []cove.Verb, 1)
	server := httptest.NewUnstartedServer(nil)
	server.Config = Server(New(Config{
		Platform:     func(cove.Principal) cove.Platform { return nil }, // nothing of it may be used
		Authenticate: func(*http.Request) (cove.Principal, func(), error) { return cove.Principal{Name: "eve"}, nil, nil },
		Authorize: func(_ context.Context, p cove.Principal, _ cove.ID, verbs ...cove.Verb) error {
			asked <- verbs
			return cove.Errorf(cove.Denied, "%s has no scope", p.Name)
		},
		Stall: 10 * time.Millisecond, BodyTime: 100 * time.Millisecond, // nothing of it comes
	}), nil)
	server.Start()
	defer server.Close()
	param := regexp.MustCompile(`\{\w+\}`)
	walked := 0
	for _, r := range table() {
		if !r.takesBody() {
			continue
		}
		walked++
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 1000\r\n\r\n", r.method, param.ReplaceAllString(r.pattern, "1"), r.takes)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s %s: %v", r.method, r.pattern, err)
		}
		said, _ := io.ReadAll(resp.Body)
		_, _ = resp.Body.Close(), conn.Close()
		var verbs []cove.Verb
		select {
		case verbs = <-asked:
		default:
		}
		if resp.StatusCode != http.StatusForbidden || !strings.Contains(string(said), "eve has no scope") {
			t.Errorf("%s %s: %d %s", r.method, r.pattern, resp.StatusCode, said)
			continue
		}
		if !slices.Equal(verbs, r.needs) || slices.ContainsFunc(verbs, func(v cove.Verb) bool { return !slices.Contains(cove.Verbs(), v) }) {
			t.Errorf("%s %s asks for %v", r.method, r.pattern, verbs)
		}
	}
	if walked < 30 {
		t.Errorf("only %d routes were walked", walked)
	}
}
