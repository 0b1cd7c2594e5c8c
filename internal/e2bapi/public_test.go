package e2bapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

// TestPublic: contexts are open without an access token where the sandbox's traffic is
// public, and to who shows its traffic token elsewhere. Nothing runs without one.
func TestPublic(t *testing.T) {
	r := serve(t)
	open, closed := r.create(`{}`), r.create(`{"network":{"allowPublicTraffic":false}}`)
	traffic := func(id cove.ID) string { return r.tokenOf("traffic", id, "tester") }
	for _, c := range []struct {
		name         string
		id           cove.ID
		method, path string
		access       string
		traffic      string
		want         int
	}{
		{"public", open, "GET", "/contexts", "", "", 200},
		{"closed", closed, "GET", "/contexts", "", "", 401},
		{"closed, restart", closed, "POST", "/contexts/python/restart", "", "", 401},
		{"closed, traffic token", closed, "GET", "/contexts", "", traffic(closed), 200},
		{"closed, traffic token of another", closed, "GET", "/contexts", "", traffic(open), 401},
		{"closed, access token", closed, "GET", "/contexts", r.token(closed), "", 200},
		{"public, code", open, "POST", "/execute", "", "", 401},
		{"public, code by traffic token", open, "POST", "/execute", "", traffic(open), 401},
		{"nobody", cove.NewID(), "GET", "/contexts", "", "", 502},
	} {
		req := r.inside(t.Context(), c.id, 49999, c.method, c.path, strings.NewReader(`{"code":"1"}`), "X-Access-Token", c.access, "E2B-Traffic-Access-Token", c.traffic)
		if got, text, _ := r.read(req); got != c.want {
			t.Errorf("%s: %d %s; want %d", c.name, got, text, c.want)
		}
	}
	r.wants(http.StatusNoContent, nil, "DELETE", "/sandboxes/"+string(closed), "")
	if got, text, _ := r.read(r.inside(t.Context(), closed, 49999, "GET", "/contexts", nil)); got != http.StatusBadGateway {
		t.Errorf("one that was killed: %d %s", got, text)
	}
}
