package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/httpapi"
)

// desk is where tickets are words: the kind they are for.
type desk struct {
	spent atomic.Bool
	left  atomic.Int32
	done  atomic.Int32
}

func (d *desk) Redeem(_ context.Context, ticket string, kind cove.GrantKind) (g cove.Grant, p cove.Principal, done func(), err error) {
	if ticket != "ticket-for-"+string(kind) || kind == cove.GrantLogin && d.spent.Load() {
		return g, p, nil, cove.Errorf(cove.Unauthenticated, "the link is not good")
	}
	return cove.Grant{Kind: kind, Session: id, Path: "/workspace/signed"}, cove.Principal{Name: "tester", Tenant: "<acme>", Scopes: []cove.Scope{"exec", "runs"}},
		func() { d.done.Add(1) }, nil
}

func (d *desk) Enter(_ context.Context, ticket string) (console string, g cove.Grant, err error) {
	if ticket != "ticket-for-login" || !d.spent.CompareAndSwap(false, true) {
		return "", g, cove.Errorf(cove.Unauthenticated, "the link is not good")
	}
	return "ticket-for-console", cove.Grant{ExpiresAt: time.Now().Add(time.Hour)}, nil
}

func (d *desk) Leave(_ context.Context, console string) error {
	if console != "ticket-for-console" {
		return errors.New("another ticket")
	}
	d.left.Add(1)
	return nil
}

func serveLinks(t *testing.T, change ...func(*httpapi.Config)) (*rig, *desk) {
	t.Helper()
	d := &desk{}
	return serve(t, append([]func(*httpapi.Config){func(c *httpapi.Config) { c.Tickets = d }}, change...)...), d
}

func TestSignedFiles(t *testing.T) {
	var log bytes.Buffer
	r, d := serveLinks(t, func(c *httpapi.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	const at = "/api/signed/file?ticket=ticket-for-"
	a := r.send("GET", at+"download", "", "Authorization", "")
	if a.status != 200 || a.body != "content\x00\xff" || a.header.Get("Content-Disposition") != "attachment" || !strings.Contains(a.header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("%d %s %v", a.status, a.body, a.header)
	}
	r.fake.size = 9
	if a := r.send("HEAD", at+"download", "", "Authorization", ""); a.status != 200 || a.body != "" || a.header.Get("Content-Length") != "9" {
		t.Errorf("HEAD: %d %v", a.status, a.header)
	}
	if n := len(r.fake.seen(cove.FileRead)); n != 1 {
		t.Errorf("the file was read %d times", n)
	}
	if a := r.send("PUT", at+"upload", "new", "Authorization", ""); a.status != 204 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if w := r.fake.seen(cove.FileWrite); len(w) != 1 || w[0].Args[2] != "new" {
		t.Errorf("the file was written with %v", w)
	}
	for _, m := range r.fake.calls {
		if m.Args[0] != id || m.Args[1] != "/workspace/signed" {
			t.Errorf("%s was asked for %v", m.Verb, m.Args)
		}
	}
	for patience := time.After(10 * time.Second); d.done.Load() != 3; { // a request is over after its answer
		select {
		case <-time.After(time.Millisecond):
		case <-patience:
			t.Fatalf("%d of 3 requests are over", d.done.Load())
		}
	}
	for _, path := range []string{at + "upload", at + "port", at + "login", at + "console", at, "/api/signed/file"} {
		if a := r.send("GET", path, "", "Authorization", ""); a.status != 401 || !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("GET %s: %d %s", path, a.status, a.body)
		}
	}
	for _, path := range []string{at + "download", at} {
		if a := r.send("PUT", path, "body", "Authorization", ""); a.status != 401 {
			t.Errorf("PUT %s: %d %s", path, a.status, a.body)
		}
	}
	if a := r.send("GET", at+"download&path=/etc/passwd", ""); a.status != 400 {
		t.Errorf("a path beside the ticket: %d", a.status)
	}
	r.fake.fail = cove.Errorf(cove.NotFound, "gone")
	if a := r.send("HEAD", at+"download", ""); a.status != 404 {
		t.Errorf("HEAD of nothing: %d", a.status)
	}
	r.server.Close() // a request is logged after its answer
	if strings.Contains(log.String(), "ticket-for") {
		t.Errorf("the log has a ticket:\n%s", log.String())
	}
}

func TestLinkRequestsThatAreRefused(t *testing.T) {
	r := serve(t)
	for _, tc := range []struct{ path, body string }{
		{"/api/sandboxes/x/files/url", `{"path":"a","method":"DELETE"}`},
		{"/api/sandboxes/x/files/url", `{"path":"a","ttl_seconds":-1}`},
		{"/api/sandboxes/x/files/url", `{"path":"a","ttl_seconds":1e300}`},
		{"/api/sandboxes/x/files/url", `{"path":7}`},
		{"/api/sandboxes/x/files/url", `{"file":"a"}`},
		{"/api/sandboxes/x/ports/no", ``},
		{"/api/sandboxes/x/ports/80", `{"ttl_seconds":0}`},
		{"/api/sandboxes/x/ports/80", `{"ttl":1}`},
		{"/api/login-links", `{"ttl_seconds":"1"}`},
		{"/api/login-links", `{"ttl_seconds":-5}`},
	} {
		if a := r.send("POST", tc.path, tc.body); a.status != 400 {
			t.Errorf("%s %s: %d %s", tc.path, tc.body, a.status, a.body)
		}
	}
	if n := len(r.fake.calls); n != 0 {
		t.Errorf("the platform was called %d times", n)
	}
	if a := r.send("POST", "/api/sandboxes/x/ports/80", ""); a.status != 201 || !strings.Contains(a.body, `"url"`) || !strings.Contains(a.body, `"expires_at"`) {
		t.Errorf("without a body: %d %s", a.status, a.body)
	}
}

// TestLoginOnce: the page does not use the link up, the button does, once.
func TestLoginOnce(t *testing.T) {
	for name, secure := range map[string]bool{"cove_console": false, "__Host-cove_console": true} {
		r, _ := serveLinks(t, func(c *httpapi.Config) { c.Secure = secure })
		for range 2 {
			a := r.send("GET", "/login?ticket=ticket-for-login", "", "Authorization", "", "Sec-Fetch-Site", "cross-site")
			if a.status != 200 || !strings.Contains(a.body, `value="ticket-for-login"`) || !strings.Contains(a.body, "&lt;acme&gt;") || a.header.Get("Set-Cookie") != "" ||
				!strings.Contains(a.header.Get("Content-Security-Policy"), "frame-ancestors 'none'") || a.header.Get("Cache-Control") != "no-store" {
				t.Fatalf("%d %v %s", a.status, a.header, a.body)
			}
		}
		a := r.post("/login", "ticket=ticket-for-login", "Authorization", "", "Sec-Fetch-Site", "same-origin")
		if a.status != 303 || a.header.Get("Location") != "./" {
			t.Fatalf("%d %v %s", a.status, a.header, a.body)
		}
		c, err := http.ParseSetCookie(a.header.Get("Set-Cookie"))
		if err != nil || c.Name != name || c.Value != "ticket-for-console" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure != secure || c.Domain != "" || c.Path != "/" ||
			!c.Expires.After(time.Now()) {
			t.Errorf("the cookie is %+v, %v", c, err)
		}
		if a := r.post("/login", "ticket=ticket-for-login"); a.status != 401 || a.header.Get("Set-Cookie") != "" {
			t.Errorf("a second time: %d %s", a.status, a.body)
		}
		if a := r.send("GET", "/login?ticket=ticket-for-login", ""); a.status != 401 {
			t.Errorf("its page: %d %s", a.status, a.body)
		}
	}
}

// post sends a form and does not follow.
func (r *rig) post(path, form string, header ...string) answer {
	r.t.Helper()
	req := r.request("POST", path, strings.NewReader(form), append([]string{"Content-Type", "application/x-www-form-urlencoded"}, header...)...)
	resp, err := r.server.Client().Transport.RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(data)}
}

func TestLoginsThatAreRefused(t *testing.T) {
	r, d := serveLinks(t)
	for form, status := range map[string]int{
		"": 401, "ticket=": 401, "ticket=ticket-for-port": 401, "ticket=%zz": 400, "ticket=" + strings.Repeat("x", 40<<10): 413,
	} {
		if a := r.post("/login", form, "Authorization", ""); a.status != status {
			t.Errorf("%.40q: %d %s", form, a.status, a.body)
		}
	}
	for _, pairs := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "http://evil.test"}, {"Origin", "null"}} {
		if a := r.post("/login", "ticket=ticket-for-login", pairs...); a.status != 403 {
			t.Errorf("%v: %d %s", pairs, a.status, a.body)
		}
	}
	if d.spent.Load() {
		t.Error("a refused request used the link up")
	}
}

// TestCookieInThePlaceOfAKey: a browser that is signed in may do what its key may,
// where its own pages ask for it.
func TestCookieInThePlaceOfAKey(t *testing.T) {
	const cookie = "cove_console=ticket-for-console"
	r, d := serveLinks(t)
	own := "http://" + r.server.Listener.Addr().String()
	for name, tc := range map[string]struct {
		method string
		status int
		pairs  []string
	}{
		"reads":               {"GET", 200, []string{"Sec-Fetch-Site", "same-origin"}},
		"writes":              {"POST", 201, []string{"Sec-Fetch-Site", "same-origin", "Origin", own}},
		"typed":               {"GET", 200, []string{"Sec-Fetch-Site", "none"}},
		"no browser":          {"POST", 201, nil},
		"old browser":         {"POST", 201, []string{"Origin", own}},
		"another site reads":  {"GET", 403, []string{"Sec-Fetch-Site", "cross-site"}},
		"another site writes": {"POST", 403, []string{"Sec-Fetch-Site", "cross-site", "Origin", "http://evil.test"}},
		"another port":        {"POST", 403, []string{"Sec-Fetch-Site", "same-site"}},
		"another port reads":  {"GET", 403, []string{"Sec-Fetch-Site", "same-site"}},
		"old browser, afar":   {"GET", 403, []string{"Origin", "http://evil.test"}},
		"two cookies":         {"GET", 401, []string{"Cookie", cookie + "; " + cookie}},
		"not good":            {"GET", 401, []string{"Cookie", "cove_console=x"}},
		"the other name":      {"GET", 401, []string{"Cookie", "__Host-cove_console=ticket-for-console"}},
		"a preview's":         {"GET", 401, []string{"Cookie", "cove_preview=ticket-for-console"}},
		"a wrong key beside":  {"GET", 401, []string{"Authorization", "Bearer wrong"}},
		"a good key beside":   {"GET", 200, []string{"Authorization", "Bearer " + secret, "Sec-Fetch-Site", "cross-site"}},
	} {
		a := r.send(tc.method, "/api/sandboxes", "", append([]string{"Authorization", "", "Cookie", cookie}, tc.pairs...)...)
		if a.status != tc.status {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	// A terminal is a read, and reading it is not all that it does.
	a := r.send("GET", "/api/sandboxes/x/terminal", "", "Authorization", "", "Cookie", cookie, "Connection", "Upgrade", "Upgrade", "websocket",
		"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==", "Sec-Fetch-Site", "same-site")
	if a.status != 403 {
		t.Errorf("another port's WebSocket: %d %s", a.status, a.body)
	}
	if a := r.send("POST", "/logout", "", "Authorization", "", "Cookie", cookie, "Sec-Fetch-Site", "same-site"); a.status != 403 || d.left.Load() != 0 {
		t.Errorf("signed out by another port: %d", a.status)
	}
	a = r.send("POST", "/logout", "", "Authorization", "", "Cookie", cookie)
	if c, err := http.ParseSetCookie(a.header.Get("Set-Cookie")); err != nil || a.status != 204 || d.left.Load() != 1 || c.Name != "cove_console" || c.Value != "" || c.Expires.After(time.Now()) {
		t.Errorf("signed out: %d %v", a.status, a.header)
	}
	if a := r.send("POST", "/logout", ""); a.status != 409 {
		t.Errorf("signed out with a key: %d %s", a.status, a.body)
	}
}

func TestFrontPageSaysWhoYouAre(t *testing.T) {
	r, d := serveLinks(t)
	for name, tc := range map[string]struct {
		pairs []string
		words string
	}{
		"nobody":     {[]string{"Authorization", ""}, "Show your key"},
		"wrong key":  {[]string{"Authorization", "Bearer x"}, "Show your key"},
		"a key":      {nil, "You are tester of the tenant acme"},
		"signed in":  {[]string{"Authorization", "", "Cookie", "cove_console=ticket-for-console"}, "You are tester of the tenant <acme>, with the scopes: exec runs"},
		"other site": {[]string{"Authorization", "", "Cookie", "cove_console=ticket-for-console", "Sec-Fetch-Site", "cross-site"}, "Show your key"},
	} {
		a := r.send("GET", "/", "", tc.pairs...)
		if a.status != 200 || !strings.Contains(a.body, tc.words) || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if d.done.Load() != 1 || r.done.Load() != 1 {
		t.Errorf("%d and %d requests are over", d.done.Load(), r.done.Load())
	}
}

func TestServerWithoutTickets(t *testing.T) {
	r := serve(t)
	for _, a := range []answer{
		r.send("GET", "/api/signed/file?ticket=x", ""), r.send("GET", "/login?ticket=x", ""), r.post("/login", "ticket=x"),
		r.send("POST", "/logout", "", "Authorization", "", "Cookie", "cove_console=x"), r.send("GET", "/api/stats", "", "Authorization", "", "Cookie", "cove_console=x"),
	} {
		if a.status != 401 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
}

// TestNoKeyWithoutEffect: a key that would change nothing is refused.
func TestNoKeyWithoutEffect(t *testing.T) {
	r, _ := serveLinks(t)
	for path, body := range map[string]string{
		"/api/code": `{"code":"1"}`, "/api/login-links": "{}", "/api/sandboxes/x/ports/80": "{}", "/api/sandboxes/x/files/url": `{"path":"f"}`,
	} {
		if a := r.send("POST", path, body, "Idempotency-Key", "k"); a.status != 400 || !strings.Contains(a.body, "Idempotency-Key") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if len(r.fake.calls) != 0 {
		t.Errorf("the platform was asked: %v", r.fake.calls)
	}
}
