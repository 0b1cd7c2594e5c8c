package e2bapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/e2bapi"
	"github.com/cove-sandbox/cove/provider/fake"
)

// ask makes a request to the control API by the rig's own key.
func (r *rig) ask(method, path, body string, header ...string) *http.Request {
	r.t.Helper()
	// A reader of no known length is sent in chunks, as their SDKs do.
	req := must(http.NewRequestWithContext(r.t.Context(), method, r.server.URL+path, io.MultiReader(strings.NewReader(body))))(r.t)
	for i, all := 0, append([]string{"X-API-Key", goodKey}, header...); i+1 < len(all); i += 2 {
		req.Header.Set(all[i], all[i+1])
	}
	return req
}

// wants makes a request, checks its status and reads the answer into v, if it is not nil.
func (r *rig) wants(status int, v any, method, path, body string, header ...string) http.Header {
	r.t.Helper()
	got, text, h := r.read(r.ask(method, path, body, header...))
	if got != status {
		r.t.Fatalf("%s %s: %d %s; want %d", method, path, got, text, status)
	}
	if v != nil {
		if err := json.Unmarshal([]byte(text), v); err != nil {
			r.t.Fatalf("%s %s: %s: %v", method, path, text, err)
		}
	}
	return h
}

// refuses makes a request that must fail, and checks what is said.
func (r *rig) refuses(status int, say, method, path, body string, header ...string) {
	r.t.Helper()
	var p struct {
		Code    int
		Message string
	}
	r.wants(status, &p, method, path, body, header...)
	if p.Code != status || !strings.Contains(p.Message, say) {
		r.t.Errorf("%s %s: the body says %d, %q; want %d with %q", method, path, p.Code, p.Message, status, say)
	}
}

type object = map[string]any

// create makes a sandbox through the face.
func (r *rig) create(body string) cove.ID {
	r.t.Helper()
	var s struct{ SandboxID cove.ID }
	r.wants(http.StatusCreated, &s, "POST", "/v2/sandboxes", body)
	return s.SandboxID
}

func (r *rig) session(id cove.ID) *cove.Session {
	r.t.Helper()
	return must(r.platform().Sessions().Get(r.t.Context(), id))(r.t)
}

func TestCreate(t *testing.T) {
	r := serve(t, func(c *e2bapi.Config) { c.CodeTemplate = func() string { return "python" } })
	var got object
	r.wants(http.StatusCreated, &got, "POST", "/v2/sandboxes", `{"templateID":"base"}`)
	id := cove.ID(got["sandboxID"].(string))
	want := object{
		"templateID": "base", "alias": "base", "sandboxID": string(id), "clientID": "cove",
		"envdVersion": "0.6.13", "envdAccessToken": r.token(id),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	s := r.session(id)
	if !s.Spec.FixedEnd || s.Spec.Idle != 5*time.Minute || !s.Spec.PublicPorts || s.Spec.Wake || s.Spec.OnEnd != cove.EndClose || s.Spec.Network.Mode != cove.NetworkOpen {
		t.Errorf("what a body that says nothing asks for: %+v", s.Spec)
	}
	s = r.session(r.create(`{"templateID":"code-interpreter-v1","timeout":60,"metadata":{"a":"1"},"envVars":{"B":"2"},"secure":true,
		"allow_internet_access":false,"autoPause":true,"autoPauseMemory":false,"autoResume":{"enabled":true},"network":{"allowPublicTraffic":false}}`))
	if s.Spec.Template != "python" || s.Spec.Idle != time.Minute || s.Spec.Metadata["a"] != "1" || !slices.Equal(s.Spec.EnvNames, []string{"B"}) ||
		s.Spec.Network.Mode != cove.NetworkNone || s.Spec.OnEnd != cove.EndStop || !s.Spec.Wake || s.Spec.PublicPorts {
		t.Errorf("what a full body asks for: %+v", s.Spec)
	}
	r.wants(http.StatusOK, &got, "POST", "/sandboxes/"+string(s.ID)+"/connect", `{"timeout":60}`)
	if got["trafficAccessToken"] != r.tokenOf("traffic", s.ID, "tester") {
		t.Errorf("a sandbox without public traffic: %v", got)
	}
	if s := r.session(r.create(`{"templateID":"node","timeout":0,"autoPause":true}`)); s.Spec.Template != "node" || s.Spec.Idle != time.Second || s.Spec.OnEnd != cove.EndPause {
		t.Errorf("a template by name: %+v", s.Spec)
	}
}

func TestCreateOnce(t *testing.T) {
	r := serve(t)
	var first, again object
	r.wants(http.StatusCreated, &first, "POST", "/v2/sandboxes", `{}`, "Idempotency-Key", "k1")
	r.wants(http.StatusCreated, &again, "POST", "/v2/sandboxes", `{}`, "Idempotency-Key", "k1")
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error(diff)
	}
	r.refuses(http.StatusConflict, "", "POST", "/v2/sandboxes", `{"timeout":9}`, "Idempotency-Key", "k1")
}

// TestOffline: a provider without a network has one only for who insisted.
func TestOffline(t *testing.T) {
	r := serveWith(t, rigOptions{fake: func(c *fake.Config) { c.Powers = without(cove.PowerEgress) }})
	var first, again object
	r.wants(http.StatusCreated, &first, "POST", "/v2/sandboxes", `{}`, "Idempotency-Key", "k")
	r.wants(http.StatusCreated, &again, "POST", "/v2/sandboxes", `{}`, "Idempotency-Key", "k")
	if first["sandboxID"] != again["sandboxID"] || r.session(cove.ID(first["sandboxID"].(string))).Spec.Network.Mode != cove.NetworkNone {
		t.Errorf("%v, then %v", first, again)
	}
	r.refuses(http.StatusBadRequest, "network", "POST", "/sandboxes", `{"templateID":"base","allow_internet_access":true}`)
}

func TestRefusals(t *testing.T) {
	r := serve(t)
	for _, c := range []struct {
		status int
		say    string
		body   string
	}{
		{400, "not the JSON", `{"templateID":7}`},
		{400, "not the JSON", `{"timeout":"soon"}`},
		{400, "not the JSON", `[`},
		{400, "timeout", `{"timeout":-1}`},
		{400, "timeout", `{"timeout":1e12}`},
		{400, "is not a name", `{"metadata":{"a=b":"c"}}`},
		{400, "is not a name", `{"envVars":{"1":"c"}}`},
		{400, "longer than", `{"metadata":{"a":"` + strings.Repeat("x", 1<<20) + `"}}`},
		{404, "unknown to provider", `{"templateID":"nope"}`},
		{404, "no template or snapshot", `{"templateID":"` + string(cove.NewID()) + `"}`},
		{400, "/mcp", `{"templateID":"mcp-gateway"}`},
		{400, "mcp", `{"mcp":{"x":{}}}`},
		{400, "iam", `{"iam":{"tokens":{"a":{}}}}`},
		{400, "volumes", `{"volumeMounts":[{"name":"v","path":"/v"}]}`},
		{400, "network.rules", `{"network":{"rules":{"a.com":[]}}}`},
		{400, "network.egressProxy", `{"network":{"egressProxy":{"address":"a:1"}}}`},
		{400, "network.maskRequestHost", `{"network":{"maskRequestHost":"a"}}`},
		{400, "network.httpsPorts", `{"network":{"httpsPorts":[8443]}}`},
		{400, "network.denyOut", `{"network":{"denyOut":["1.1.1.1/32"]}}`},
		{400, "network.allowOut", `{"network":{"allowOut":["8.8.8.8"],"denyOut":["0.0.0.0/0"]}}`},
		{400, "network.allowOut", `{"network":{"allowOut":["10.0.0.0/8"]}}`},
		{400, "add 0.0.0.0/0 to denyOut", `{"network":{"allowOut":["pypi.org"]}}`},
		{400, "network.allow", `{"network":{"allowOut":["not a host"],"denyOut":["0.0.0.0/0"]}}`},
	} {
		r.refuses(c.status, c.say, "POST", "/v2/sandboxes", c.body)
	}
	for range must(collect(r))(t) {
		t.Error("a refused body made a session")
	}
}

func collect(r *rig) (all []*cove.Session, err error) {
	for s, err := range r.platform().Sessions().List(r.t.Context(), cove.SessionFilter{}) {
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func TestNetwork(t *testing.T) {
	r := serve(t)
	for body, want := range map[string]cove.Network{
		`{"allow_internet_access":true}`:                                          {Mode: cove.NetworkOpen},
		`{"network":{"allowOut":["0.0.0.0/0"],"denyOut":["0.0.0.0/0"]}}`:          {Mode: cove.NetworkOpen},
		`{"network":{"denyOut":["0.0.0.0/0"]}}`:                                   {Mode: cove.NetworkNone},
		`{"network":{"allowOut":["pypi.org"],"denyOut":["0.0.0.0/0"]}}`:           {Mode: cove.NetworkAllow, Allow: []string{"pypi.org"}},
		`{"allow_internet_access":false,"network":{"allowOut":["*.github.com"]}}`: {Mode: cove.NetworkAllow, Allow: []string{"*.github.com"}},
		`{"network":{"rules":{},"egressProxy":null},"iam":null,"mcp":null}`:       {Mode: cove.NetworkOpen},
	} {
		if diff := cmp.Diff(want, r.session(r.create(body)).Spec.Network); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
	id := r.create(`{}`)
	at := "/sandboxes/" + string(id)
	r.wants(http.StatusNoContent, nil, "PUT", at+"/network", `{"allowOut":["pypi.org"],"denyOut":["0.0.0.0/0"]}`)
	var info struct {
		AllowInternetAccess bool
		Network             object
	}
	r.wants(http.StatusOK, &info, "GET", at, "")
	want := object{"allowOut": []any{"pypi.org"}, "denyOut": []any{"0.0.0.0/0"}, "allowPublicTraffic": true}
	if diff := cmp.Diff(want, info.Network); diff != "" || !info.AllowInternetAccess {
		t.Error(info.AllowInternetAccess, diff)
	}
	r.wants(http.StatusNoContent, nil, "PUT", at+"/network", `{}`)
	if n := r.session(id).Spec.Network; n.Mode != cove.NetworkOpen {
		t.Errorf("a network that was cleared: %+v", n)
	}
	r.refuses(http.StatusBadRequest, "network.denyOut", "PUT", at+"/network", `{"denyOut":["1.1.1.1"]}`)
	r.refuses(http.StatusBadRequest, "not the JSON", "PUT", at+"/network", `7`)
	r.refuses(http.StatusNotFound, "", "PUT", "/sandboxes/x/network", `{}`)
}

// TestKeyDefaults: silence about the network means what the caller's key says.
func TestKeyDefaults(t *testing.T) {
	r := serve(t, func(c *e2bapi.Config) {
		platform := c.Platform
		c.Platform = func(p cove.Principal) cove.Platform {
			p.Defaults.Network = cove.Network{Mode: cove.NetworkNone}
			return platform(p)
		}
		auth := c.Authenticate
		c.Authenticate = func(ctx context.Context, key string) (cove.Principal, func(), error) {
			p, done, err := auth(ctx, key)
			p.Defaults.Network = cove.Network{Mode: cove.NetworkNone}
			return p, done, err
		}
	})
	if n := r.session(r.create(`{}`)).Spec.Network; n.Mode != cove.NetworkNone {
		t.Errorf("%+v", n)
	}
}

func TestInfo(t *testing.T) {
	r := serve(t, func(c *e2bapi.Config) { c.Domain = "cove.test:8443" })
	id := r.create(`{"timeout":120,"metadata":{"k":"v"},"autoPause":true,"autoResume":{"enabled":true}}`)
	var got object
	r.wants(http.StatusOK, &got, "GET", "/sandboxes/"+string(id), "")
	s := r.session(id)
	want := object{
		"templateID": "base", "alias": "base", "sandboxID": string(id), "clientID": "cove", "envdVersion": "0.6.13",
		"envdAccessToken": r.token(id), "domain": "cove.test:8443", "state": "running", "metadata": object{"k": "v"},
		"startedAt": s.CreatedAt.UTC().Format(time.RFC3339Nano), "endAt": s.ExpiresAt.UTC().Format(time.RFC3339Nano),
		"cpuCount": got["cpuCount"], "memoryMB": got["memoryMB"], "diskSizeMB": got["diskSizeMB"],
		"allowInternetAccess": true, "volumeMounts": []any{}, "network": object{"allowPublicTraffic": true},
		"lifecycle": object{"onTimeout": "pause", "autoResume": true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := got["cpuCount"].(float64); n < 1 || n != float64(int(n)) {
		t.Errorf("cpuCount is %v", n)
	}
	r.wants(http.StatusOK, &got, "GET", "/sandboxes/"+string(id)+"/logs", "")
	r.wants(http.StatusOK, &got, "GET", "/v2/sandboxes/"+string(id)+"/logs", "")
	if _, ok := got["logs"].([]any); !ok {
		t.Errorf("logs: %v", got)
	}
}

func TestStrangers(t *testing.T) {
	r := serve(t)
	id := r.create(`{}`)
	routes := []struct{ method, path, body string }{
		{"GET", "/sandboxes/%s", ""},
		{"DELETE", "/sandboxes/%s", ""},
		{"POST", "/sandboxes/%s/connect", `{"timeout":60}`},
		{"POST", "/v2/sandboxes/%s/connect", `{}`},
		{"POST", "/sandboxes/%s/resume", `{}`},
		{"POST", "/sandboxes/%s/refreshes", `{}`},
		{"POST", "/sandboxes/%s/timeout", `{"timeout":60}`},
		{"POST", "/sandboxes/%s/pause", `{}`},
		{"POST", "/sandboxes/%s/pause", `{"memory":false}`},
		{"GET", "/sandboxes/%s/metrics", ""},
		{"GET", "/sandboxes/%s/logs", ""},
		{"PUT", "/sandboxes/%s/network", `{}`},
		{"POST", "/sandboxes/%s/fork", `{}`},
		{"POST", "/sandboxes/%s/snapshots", `{}`},
		{"DELETE", "/templates/%s", ""},
	}
	for _, c := range routes {
		for _, other := range []string{string(cove.NewID()), "x", "..%2f" + string(id)} {
			r.refuses(http.StatusNotFound, "", c.method, fmt.Sprintf(c.path, other), c.body)
		}
		at := fmt.Sprintf(c.path, id)
		r.refuses(http.StatusNotFound, "", c.method, at, c.body, "X-API-Key", otherKey)
		r.refuses(http.StatusUnauthorized, "", c.method, at, c.body, "X-API-Key", "e2b_00")
	}
	for _, path := range []string{"/v2/sandboxes", "/sandboxes", "/snapshots", "/secrets"} {
		var none []object
		r.wants(http.StatusOK, &none, "GET", path, "", "X-API-Key", otherKey)
		if len(none) > 0 {
			t.Errorf("%s shows a stranger %v", path, none)
		}
		r.refuses(http.StatusUnauthorized, "", "GET", path, "", "X-API-Key", "")
	}
	if s := r.session(id); s.State != cove.Running {
		t.Errorf("strangers made it %s", s.State)
	}
	r.refuses(http.StatusNotFound, "there is no PATCH", "PATCH", "/sandboxes/"+string(id), "")
	r.refuses(http.StatusNotFound, "there is no GET", "GET", "/v2//sandboxes", "")
	r.refuses(http.StatusNotFound, "there is no GET", "GET", "/v3/nothing", "")
}

// TestKeys: the key that counts is the one in X-API-Key, whatever is beside it.
func TestKeys(t *testing.T) {
	r := serve(t)
	for name, c := range map[string]struct {
		header []string
		want   int
	}{
		"beside an access token": {[]string{"X-API-Key", goodKey, "Authorization", "Bearer sk_e2b_1"}, 200},
		"as a bearer":            {[]string{"Authorization", "bearer " + goodKey}, 200},
		"basic":                  {[]string{"Authorization", "Basic " + goodKey}, 401},
		"twice":                  {[]string{"X-API-Key", goodKey, "X-API-Key", otherKey}, 401},
		"two bearers":            {[]string{"Authorization", "Bearer " + goodKey, "Authorization", "Bearer " + goodKey}, 401},
		"none":                   {nil, 401},
	} {
		req := r.ask("GET", "/v2/sandboxes", "")
		req.Header.Del("X-API-Key")
		for i := 0; i+1 < len(c.header); i += 2 {
			req.Header.Add(c.header[i], c.header[i+1])
		}
		if got, text, _ := r.read(req); got != c.want {
			t.Errorf("%s: %d %s; want %d", name, got, text, c.want)
		}
	}
}

func TestList(t *testing.T) {
	r := serve(t)
	var ids []string
	for i := range 5 {
		ids = append([]string{string(r.create(fmt.Sprintf(`{"metadata":{"n":"%d","odd key":"%d %% 2"}}`, i, i%2)))}, ids...)
	}
	shown := func(query string) (got []string, h http.Header) {
		t.Helper()
		var list []struct{ SandboxID string }
		h = r.wants(http.StatusOK, &list, "GET", "/v2/sandboxes?"+query, "")
		for _, s := range list {
			got = append(got, s.SandboxID)
		}
		return got, h
	}
	same := func(name string, got, want []string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	all, h := shown("")
	same("newest first", all, ids)
	if h.Get("X-Total-Running") != "5" || h.Get("X-Next-Token") != "" {
		t.Errorf("headers of a list: %v", h)
	}
	var paged []string
	for token, more := "", true; more; more = token != "" {
		part, h := shown("limit=2&nextToken=" + url.QueryEscape(token))
		paged = append(paged, part...)
		token = h.Get("X-Next-Token")
	}
	same("in pages", paged, ids)
	if _, err := r.platform().Snapshots().Pause(t.Context(), cove.ID(ids[1])); err != nil {
		t.Fatal(err)
	}
	got, _ := shown("state=paused")
	same("paused", got, ids[1:2])
	got, _ = shown("state=running,paused")
	same("both", got, ids)
	got, _ = shown("state=running&state=paused&order=asc&limit=1")
	same("oldest first", got, ids[4:])
	pair := url.Values{url.PathEscape("odd key"): {url.PathEscape("1 % 2")}}.Encode()
	got, _ = shown("metadata=" + url.QueryEscape(pair))
	same("by metadata", got, []string{ids[1], ids[3]})
	got, _ = shown("template=base")
	same("by template", got, ids)
	got, _ = shown("template=node")
	same("by another template", got, nil)
	got, _ = shown("startedAfter=" + url.QueryEscape(r.session(cove.ID(ids[2])).CreatedAt.Format(time.RFC3339Nano)))
	same("by time", got, ids[:2])
	var running []object
	r.wants(http.StatusOK, &running, "GET", "/sandboxes", "")
	if len(running) != 4 {
		t.Errorf("%d run; want 4", len(running))
	}
	for _, bad := range []string{"state=dead", "order=up", "limit=0", "limit=x", "limit=100000", "nextToken=x", "nextToken=MQ." + "x", "startedAfter=now", "metadata=%25zz", "metadata=a%3D%2525zz"} {
		name, _, _ := strings.Cut(bad, "=")
		r.refuses(http.StatusBadRequest, name, "GET", "/v2/sandboxes?"+bad, "")
		r.refuses(http.StatusBadRequest, name, "GET", "/sandboxes?"+bad, "")
	}
}

func TestSecrets(t *testing.T) {
	r := serve(t, func(c *e2bapi.Config) {
		c.Secrets = func(p cove.Principal) []string {
			if p.Tenant != "acme" {
				return nil
			}
			return []string{"pypi", "github"}
		}
	})
	var list []struct{ SecretID, Name string }
	r.wants(http.StatusOK, &list, "GET", "/secrets", "")
	if len(list) != 2 || list[0].Name != "github" || list[1].SecretID != "pypi" {
		t.Errorf("%+v", list)
	}
	var one object
	r.wants(http.StatusOK, &one, "GET", "/secrets/pypi", "")
	if one["currentVersion"] != 1.0 || one["value"] != nil {
		t.Errorf("%v", one)
	}
	r.refuses(http.StatusNotFound, "no secret", "GET", "/secrets/pypi", "", "X-API-Key", otherKey)
	for _, c := range [][2]string{{"POST", "/secrets"}, {"POST", "/secrets/pypi"}, {"DELETE", "/secrets/pypi"}} {
		r.refuses(http.StatusBadRequest, "settings of the server", c[0], c[1], `{"name":"x","value":"y"}`)
	}
}

// TestFull: a server that is full says when to come back.
func TestFull(t *testing.T) {
	r := serveWith(t, rigOptions{engine: func(c *engine.Config) { c.MaxSessions = 1 }})
	r.create(`{}`)
	status, text, h := r.read(r.ask("POST", "/v2/sandboxes", `{}`))
	if status != http.StatusTooManyRequests || h.Get("Retry-After") == "" || !strings.Contains(text, `"code":429`) {
		t.Errorf("%d %v %s", status, h, text)
	}
}

// without is every power but some.
func without(less ...cove.Power) []cove.Power {
	return slices.DeleteFunc(cove.Powers(), func(p cove.Power) bool { return p == cove.PowerResume || slices.Contains(less, p) })
}
