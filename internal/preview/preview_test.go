package preview_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/preview"
)

// echo answers with the request as it came in.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	lines := []string{r.Method + " " + r.RequestURI, "Host: " + r.Host, "body: " + string(body)}
	for name, values := range r.Header {
		for _, v := range values {
			lines = append(lines, name+": "+v)
		}
	}
	slices.Sort(lines[3:])
	_, _ = io.WriteString(w, strings.Join(lines, "\n"))
}

func TestWhatGoesIn(t *testing.T) {
	r := start(t, serving(echo))
	a := r.send("POST", "/secret-path//x%2Fy?b=%20c;d&cove_tickets=1&a", "content",
		"Authorization", "Bearer cove_key", "X-API-Key", "cove_key", "Proxy-Authorization", "x", "X-Real-IP", "10.1.1.1",
		"X-Forwarded-For", "10.1.1.1", "X-Forwarded-Host", "evil", "X-Forwarded-User", "root", "Forwarded", "for=1", "Connection", "X-Hop", "X-Hop", "1",
		"Cookie", "app=1; cove_preview="+good+"; __Host-cove_preview=x;  cove_console=x; Cove_Other=y; __Host-cove_console=z; theirs=\"a b\"",
		"Origin", "http://"+host(), "X-Own", "kept", "User-Agent", "tester", "Accept-Encoding", "br")
	want := strings.Join([]string{
		"POST /secret-path//x%2Fy?b=%20c;d&cove_tickets=1&a", "Host: " + host(), "body: content",
		"Accept-Encoding: br", "Connection: close", "Content-Length: 7", "Cookie: app=1; theirs=\"a b\"", "Origin: http://" + host(), "User-Agent: tester",
		"X-Forwarded-Host: " + host(), "X-Forwarded-Proto: http", "X-Own: kept",
	}, "\n")
	if diff := cmp.Diff(want, a.body); a.status != 200 || diff != "" {
		t.Errorf("%d (-want +got):\n%s", a.status, diff)
	}
	r.settled()
	if r.done.Load() != 1 {
		t.Errorf("%d requests are over", r.done.Load())
	}
}

func TestWhatComesOut(t *testing.T) {
	r := start(t, raw("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nSet-Cookie: early=1; Domain=preview.test\r\n\r\n"+
		"HTTP/1.1 201 Fine\r\nContent-Length: 2\r\nX-Own: kept\r\nContent-Type: text/html\r\n"+
		"Set-Cookie: app=1; Path=/; HttpOnly\r\nSet-Cookie: wide=1; Domain=preview.test\r\nSet-Cookie: wide=1;domain = .test\r\nSet-Cookie: domain=ok\r\n"+
		"Set-Cookie: cove_preview=mine\r\nSet-Cookie: =cove_preview=mine\r\nSet-Cookie: cove_preview =mine\r\nSet-Cookie: __Host-cove_preview=mine; Secure; Path=/\r\nSet-Cookie: __Secure-Cove_console=1\r\n"+
		"Service-Worker-Allowed: /\r\nStrict-Transport-Security: max-age=1; includeSubDomains\r\nClear-Site-Data: \"cookies\"\r\nAlt-Svc: h2=\":1\"\r\n"+
		"NEL: {}\r\nReport-To: {}\r\nOrigin-Agent-Cluster: ?0\r\nX-Content-Type-Options: sniff\r\nAccess-Control-Allow-Origin: *\r\n\r\nhi"))
	a := r.send("GET", "/", "")
	want := http.Header{
		"Content-Length": {"2"}, "Content-Type": {"text/html"}, "X-Own": {"kept"}, "Set-Cookie": {"app=1; Path=/; HttpOnly", "domain=ok"},
		"Origin-Agent-Cluster": {"?1"}, "X-Content-Type-Options": {"nosniff"}, "Access-Control-Allow-Origin": {"*"},
	}
	a.header.Del("Date")
	a.header.Del("Connection")
	if diff := cmp.Diff(want, a.header); a.status != 201 || a.body != "hi" || diff != "" {
		t.Errorf("%d %q (-want +got):\n%s", a.status, a.body, diff)
	}
}

// TestTrailersComeOutAsHeadersDo: what stands behind a body is read by some.
func TestTrailersComeOutAsHeadersDo(t *testing.T) {
	r := start(t, raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, Set-Cookie\r\n\r\n2\r\nhi\r\n0\r\n"+
		"X-Sum: 1\r\nSet-Cookie: cove_preview=mine\r\nSet-Cookie: app=1\r\nStrict-Transport-Security: max-age=1\r\n\r\n"))
	a := r.send("GET", "/", "")
	want := http.Header{"X-Sum": {"1"}, "Set-Cookie": {"app=1"}}
	if diff := cmp.Diff(want, a.trailer); a.body != "hi" || diff != "" {
		t.Errorf("%q (-want +got):\n%s", a.body, diff)
	}
}

func TestLinkBecomesACookie(t *testing.T) {
	for name, tc := range map[string]struct {
		path, to string
		secure   bool
	}{
		"front":        {"/?cove_ticket=" + good, "/", false},
		"deep":         {"/a%2Fb/c?x=1&cove_ticket=" + good + "&y=%3D", "/a%2Fb/c?x=1&y=%3D", false},
		"https":        {"/?cove_ticket=" + good, "/", true},
		"another name": {"/?cove%5Fticket=" + good, "/", false},
		"another host": {"//evil.test/x?cove_ticket=" + good, "/evil.test/x", false},
		"backslash":    {"/%5Cevil.test?cove_ticket=" + good, "/%5Cevil.test", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, serving(echo), func(c *preview.Config) { c.Secure = tc.secure })
			a := r.send("GET", tc.path, "", "Cookie", "")
			if a.status != 303 || a.header.Get("Location") != tc.to || a.header.Get("Referrer-Policy") != "no-referrer" || a.header.Get("Cache-Control") != "no-store" {
				t.Fatalf("%d %v", a.status, a.header)
			}
			c, err := http.ParseSetCookie(a.header.Get("Set-Cookie"))
			if err != nil {
				t.Fatal(err)
			}
			wantName := "cove_preview"
			if tc.secure {
				wantName = "__Host-cove_preview"
			}
			if c.Name != wantName || c.Value != good || c.Domain != "" || c.Path != "/" || !c.HttpOnly || c.Secure != tc.secure || c.SameSite != http.SameSiteLaxMode || !c.Expires.Equal(r.expires.UTC().Truncate(1e9)) {
				t.Errorf("the cookie is %+v", c)
			}
			if n := r.dialed.Load(); n != 0 {
				t.Errorf("the program was asked %d times", n)
			}
			if b := r.send("GET", "/", "", "Cookie", c.Name+"="+c.Value); b.status != 200 {
				t.Errorf("with the cookie: %d %s", b.status, b.body)
			}
		})
	}
}

// TestLinkWithoutABrowser: a program that posts to a link needs no cookie.
func TestLinkWithoutABrowser(t *testing.T) {
	r := start(t, serving(echo))
	a := r.send("POST", "/hook?a=1&cove_ticket="+good, "x", "Cookie", "", "Origin", "https://elsewhere.test", "Sec-Fetch-Site", "cross-site")
	if a.status != 200 || !strings.HasPrefix(a.body, "POST /hook?a=1\n") || a.header.Get("Set-Cookie") != "" {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestWithoutATicket(t *testing.T) {
	r := start(t, serving(echo))
	for name, tc := range map[string]struct {
		method, path string
		pairs        []string
		status       int
	}{
		"nothing":             {"GET", "/", []string{"Cookie", ""}, 401},
		"wrong cookie":        {"GET", "/", []string{"Cookie", "cove_preview=x"}, 401},
		"another port's":      {"GET", "/", []string{"Cookie", "cove_preview=" + other}, 401},
		"wrong ticket":        {"GET", "/?cove_ticket=x", nil, 401}, // although the cookie is good
		"another port's link": {"GET", "/?cove_ticket=" + other, nil, 401},
		"a key":               {"GET", "/", []string{"Cookie", "", "Authorization", "Bearer " + good}, 401},
		"many wrong ones":     {"GET", "/", []string{"Cookie", strings.Repeat("cove_preview=x; ", 8) + "cove_preview=" + good}, 401},
		"a tossed one beside": {"GET", "/", []string{"Cookie", "cove_preview=x; cove_preview=" + good}, 200},
		"no such name":        {"GET", "/", []string{"Host", "x." + domain}, 404},
		"the domain itself":   {"GET", "/", []string{"Host", domain}, 404},
		"another host":        {"GET", "/", []string{"Host", "127.0.0.1:80"}, 404},
		"a zero before":       {"GET", "/", []string{"Host", "0" + host()}, 404},
		"port 0":              {"GET", "/", []string{"Host", "0-" + string(session) + "." + domain}, 404},
		"port 65536":          {"GET", "/", []string{"Host", "65536-" + string(session) + "." + domain}, 404},
		"no session":          {"GET", "/", []string{"Host", "3000-x." + domain}, 404},
		"a name below":        {"GET", "/", []string{"Host", "x." + host()}, 404},
		"a port behind":       {"GET", "/", []string{"Host", host() + ":8001"}, 200},
		"capitals and a dot":  {"GET", "/", []string{"Host", strings.ToUpper(host()) + "."}, 200},
		"trace":               {"TRACE", "/", nil, 400},
	} {
		a := r.send(tc.method, tc.path, "", tc.pairs...)
		if a.status != tc.status {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		if tc.status != 200 && (!strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") || !strings.HasPrefix(a.body, "Cove: ") || a.header.Get("Set-Cookie") != "") {
			t.Errorf("%s: %v %s", name, a.header, a.body)
		}
	}
}

// TestOtherSites: the cookie comes along with what other pages ask for, too.
func TestOtherSites(t *testing.T) {
	sibling := "http://" + preview.Host(8080, session, domain)
	stranger := "http://" + preview.Host(3000, cove.NewID(), domain)
	r := start(t, serving(echo))
	for name, tc := range map[string]struct {
		method string
		status int
		pairs  []string
	}{
		"its own page":           {"POST", 200, []string{"Sec-Fetch-Site", "same-origin", "Origin", "http://" + host()}},
		"typed":                  {"GET", 200, []string{"Sec-Fetch-Site", "none"}},
		"a link from elsewhere":  {"GET", 200, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}},
		"a frame elsewhere":      {"GET", 403, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}},
		"a form elsewhere":       {"POST", 403, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Origin", "http://evil.test"}},
		"another session reads":  {"GET", 403, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"}},
		"another session's page": {"GET", 403, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors", "Origin", stranger}},
		"its WebSocket":          {"GET", 403, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "websocket", "Origin", stranger}},
		"another port's page":    {"POST", 200, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors", "Origin", sibling}},
		"an old browser":         {"POST", 403, []string{"Origin", stranger}},
		"an old browser at home": {"POST", 200, []string{"Origin", "http://" + host() + ":80"}},
		"no origin at all":       {"GET", 403, []string{"Origin", "null"}},
		"a broken origin":        {"GET", 403, []string{"Origin", "http://[::1"}},
		"no browser":             {"POST", 200, nil},
	} {
		if a := r.send(tc.method, "/", "", tc.pairs...); a.status != tc.status {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

func TestWhatGoesWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		status int
		word   string
	}{
		"nobody listens": {cove.Errorf(cove.Unavailable, "nothing listens on port 3000"), 502, "nothing listens on port 3000"},
		"ended":          {cove.Errorf(cove.NotFound, "the session was closed").Remedy("open a new one"), 404, "open a new one"},
		"stopped":        {cove.Errorf(cove.Conflict, "the session is stopped"), 409, "stopped"},
		"no power":       {cove.Errorf(cove.Unsupported, "no power to dial"), 501, "dial"},
		"lost the scope": {cove.Errorf(cove.Denied, "needs the scope exec"), 403, "exec"},
		"a bug":          {io.ErrUnexpectedEOF, 500, "internal error"},
		"a strange code": {cove.Code("strange"), 500, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, serving(echo), func(c *preview.Config) {
				c.Platform = func(cove.Principal) cove.Platform {
					return inside{dial: func(context.Context, cove.ID, int) (net.Conn, error) { return nil, tc.err }}
				}
			})
			a := r.send("GET", "/", "")
			if a.status != tc.status || !strings.Contains(a.body, tc.word) || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") {
				t.Errorf("%d %v %s", a.status, a.header, a.body)
			}
		})
	}
}

func TestHostilePrograms(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, text := range map[string]string{
		"says nothing":      "",
		"is not HTTP":       "SSH-2.0-OpenSSH\r\n\r\n",
		"endless headers":   "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-"+long+": "+long+"\r\n", 100) + "\r\n",
		"a long early hint": strings.Repeat("HTTP/1.1 103 Early\r\nX: "+long+"\r\n\r\n", 200),
		"switches unasked":  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"a bad status":      "HTTP/1.1 99999 No\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, raw(text))
			if a := r.send("GET", "/", ""); a.status != 502 || !strings.Contains(a.body, "port 3000") {
				t.Errorf("%d %.300s", a.status, a.body)
			}
			r.settled()
		})
	}
}

func TestTooManyAtOnce(t *testing.T) {
	hold, held := make(chan struct{}), make(chan struct{}, 1)
	r := start(t, serving(func(w http.ResponseWriter, _ *http.Request) {
		held <- struct{}{}
		<-hold
		_, _ = io.WriteString(w, "late")
	}), func(c *preview.Config) { c.AtOnce = 1 })
	_, in := r.dial("GET / HTTP/1.1", "Connection: close")
	<-held
	if a := r.send("GET", "/", ""); a.status != 429 || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", a.status, a.body)
	}
	close(hold)
	if text, err := io.ReadAll(in); err != nil || !strings.Contains(string(text), "late") {
		t.Errorf("%s %v", text, err)
	}
	r.settled()
	if a := r.send("GET", "/", ""); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}
