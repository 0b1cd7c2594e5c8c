package e2bapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
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

// bodyless are the calls that change something and look at no body.
var bodyless = []string{
	"POST /secrets", "POST /secrets/{id}", "POST /contexts/{id}/restart", "POST /volumecontent/{id}/dir",
}

// TestScopeBeforeBody: each call with a body refuses a key without the scope before a
// byte of the body has come.
func TestScopeBeforeBody(t *testing.T) {
	t.Parallel()
	eve := func(context.Context, string) (cove.Principal, func(), error) {
		return cove.Principal{Name: "eve"}, nil, nil
	}
	asked := make(chan cove.Verb, 1)
	secret, id := []byte("secret"), cove.NewID()
	server := httptest.NewServer(New(Config{
		Platform:     func(cove.Principal) cove.Platform { return nil }, // nothing of it may be used
		Authenticate: eve, Key: eve, Secret: secret,
		Authorize: func(_ context.Context, p cove.Principal, _ cove.ID, verbs ...cove.Verb) error {
			asked <- verbs[0]
			return cove.Errorf(cove.Denied, "%s has no scope", p.Name)
		},
		Stall: 10 * time.Millisecond, BodyTime: 100 * time.Millisecond, // nothing of it comes
	}))
	defer server.Close()
	param := regexp.MustCompile(`\{\w+\}`)
	walked := map[string]bool{}
	for _, routes := range []map[string]action{
		controlRoutes(), templateRoutes(), volumeRoutes(), contentRoutes(), interpreterRoutes(), processCalls(), filesystemCalls(), fileRoutes(),
	} {
		for route := range routes {
			method, path, _ := strings.Cut(route, " ")
			if (method == "GET" || method == "DELETE") && needs[route] == "" || slices.Contains(bodyless, route) {
				continue
			}
			walked[route] = true
			port := envdPort
			if interpreterRoutes()[route] != nil {
				port = interpreterPort
			}
			header := fmt.Sprintf("Authorization: Bearer %s\r\n", Token(secret, kindVolume, id, "eve"))
			if contentRoutes()[route] == nil && controlRoutes()[route] == nil && templateRoutes()[route] == nil && volumeRoutes()[route] == nil {
				header = fmt.Sprintf("E2b-Sandbox-Id: %s\r\nE2b-Sandbox-Port: %d\r\nX-Access-Token: %s\r\n", id, port, Token(secret, kindAccess, id, "eve"))
			}
			status, said := half(t, server.Listener.Addr().String(), fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: 1000\r\n\r\n",
				method, param.ReplaceAllString(path, string(id)), header))
			var verb cove.Verb
			select {
			case verb = <-asked:
			default:
			}
			if status != http.StatusForbidden || !strings.Contains(said, "eve has no scope") || verb != needs[route] || !slices.Contains(cove.Verbs(), verb) {
				t.Errorf("%s asks for %q: %d %s", route, verb, status, said)
			}
		}
	}
	for route := range maps.Keys(needs) {
		if !walked[route] {
			t.Errorf("there is no route %s", route)
		}
	}
}

// half sends the head of a request and returns the answer to it.
func half(t *testing.T, addr, head string) (status int, said string) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%.60s: %v", head, err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}
