package httpapi_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/httpapi"
)

// numbers is a server with metrics whose caller holds scopes.
func numbers(t *testing.T, scopes ...cove.Scope) *rig {
	t.Helper()
	return serve(t, func(c *httpapi.Config) {
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "cove_x 1\n") })
		known := c.Authenticate
		c.Authenticate = func(r *http.Request) (cove.Principal, func(), error) {
			p, done, err := known(r)
			p.Scopes = scopes
			return p, done, err
		}
	})
}

func TestMetrics(t *testing.T) {
	r := numbers(t, cove.ScopeMetrics)
	if a := r.send("GET", "/metrics", ""); a.status != 200 || a.body != "cove_x 1\n" || len(r.fake.calls) != 0 {
		t.Errorf("with the scope: %d %q after %v", a.status, a.body, r.fake.calls)
	}
	r = numbers(t)
	if a := r.send("GET", "/metrics/", ""); a.status != 200 || len(r.fake.calls) != 1 {
		t.Errorf("an operator: %d after %v", a.status, r.fake.calls)
	}
	r.fake.fail = cove.Errorf(cove.Denied, "no")
	if a := r.send("GET", "/metrics", ""); a.status != 403 || strings.Contains(a.body, "cove_x") || !strings.Contains(a.problem(t).Error, "needs the scope metrics or admin") {
		t.Errorf("without the scope: %d %s", a.status, a.body)
	}
	if a := serve(t).send("GET", "/metrics", ""); a.status != 501 || a.problem(t).Remedy == "" {
		t.Errorf("a server without metrics: %d %s", a.status, a.body)
	}
}

func TestRequestsAreTold(t *testing.T) {
	type mark struct{}
	var mu sync.Mutex
	var began []string
	var ended []httpapi.Ending
	r := serve(t, func(c *httpapi.Config) {
		c.Begin = func(r *http.Request, route string) context.Context {
			mu.Lock()
			defer mu.Unlock()
			began = append(began, route)
			return context.WithValue(r.Context(), mark{}, true)
		}
		c.End = func(ctx context.Context, e httpapi.Ending) {
			mu.Lock()
			defer mu.Unlock()
			ended = append(ended, e)
			if known := e.Principal != ""; known != (ctx.Value(mark{}) != nil) {
				t.Errorf("%s does not go on with the context it was given", e.Route)
			}
		}
	})
	id := cove.NewID()
	r.send("GET", "/api/stats", "")
	r.send("GET", "/api/stats", "", "Authorization", "")
	r.send("GET", "/nowhere", "")
	r.send("POST", "/api/sandboxes/"+string(id)+"/execute", "not JSON")
	r.send("GET", "/api/sandboxes/hush", "")
	r.server.Close() // the last one has been told of
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"/api/stats", "/api/sandboxes/{id}/execute", "/api/sandboxes/{id}"}; !slices.Equal(began, want) {
		t.Errorf("told of the beginning of %q, want %q", began, want)
	}
	for i, want := range []struct {
		route   string
		status  int
		code    cove.Code
		who     string
		session cove.ID
	}{
		{"/api/stats", 200, "", "tester", ""},
		{"/api/stats", 401, cove.Unauthenticated, "", ""},
		{"", 404, cove.NotFound, "", ""},
		{"/api/sandboxes/{id}/execute", 400, cove.Invalid, "tester", id},
		{"/api/sandboxes/{id}", 200, "", "tester", ""},
	} {
		e := ended[i]
		if e.Route != want.route || e.Status != want.status || cove.CodeOf(e.Err) != want.code || e.Principal != want.who || e.Session != want.session || e.Wall <= 0 {
			t.Errorf("request %d ended as %+v, want %+v", i, e, want)
		}
	}
}
