package daemon_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// browser has cookies, and finds every name at one address.
func browser(t *testing.T, address string) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}}
}

func fetch(t *testing.T, c *http.Client, method, address, body string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

func adminOf(t *testing.T, r daemon.Ready) *client.Client {
	t.Helper()
	key, err := os.ReadFile(r.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return dial(t, r.URL, strings.TrimSpace(string(key)))
}

func open(t *testing.T, c *client.Client) cove.ID {
	t.Helper()
	s, err := c.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return s.ID
}

// TestLinksOfTheMachineAndOfKeys: both doors make links, which outlive a restart
// and end with the key that made them.
func TestLinksOfTheMachineAndOfKeys(t *testing.T) {
	cfg := settings(t)
	r, end := serve(t, cfg, daemon.Options{})
	own := dial(t, "unix://"+r.Socket, "")
	id := open(t, own)
	if err := own.Files(id).Write(t.Context(), "a", strings.NewReader("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	made, secret, err := own.Admin().CreateKey(t.Context(), cove.KeyRequest{Name: "reader", Scopes: []cove.Scope{cove.ScopeFileRead}})
	if err != nil {
		t.Fatal(err)
	}
	mine, err := own.Links().Download(t.Context(), cove.FileLink{Session: id, Path: "a"})
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := dial(t, r.URL, secret).Links().Download(t.Context(), cove.FileLink{Session: id, Path: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := own.Links().Port(t.Context(), cove.PortLink{Session: id, Port: 80}); cove.CodeOf(err) != cove.Unsupported || !strings.Contains(cove.RemedyOf(err), "COVE_PREVIEW_ADDR") {
		t.Errorf("a preview without an origin: %v", err)
	}
	info, err := os.Stat(filepath.Join(r.Home, "link.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("link.key: %v %v", info, err)
	}
	end()
	r, _ = serve(t, cfg, daemon.Options{})
	c := browser(t, hostOf(t, r.URL)) // the port is another one now
	for _, l := range []*cove.Link{mine, theirs} {
		if status, text := fetch(t, c, "GET", l.URL, ""); status != 200 || text != "content" {
			t.Errorf("after a restart: %d %s", status, text)
		}
	}
	if err := dial(t, "unix://"+r.Socket, "").Admin().RevokeKey(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	if status, _ := fetch(t, c, "GET", theirs.URL, ""); status != 401 {
		t.Errorf("of a revoked key: %d", status)
	}
	if status, _ := fetch(t, c, "GET", mine.URL, ""); status != 200 {
		t.Errorf("of the user of the machine: %d", status)
	}
}

// TestLoginLinkOfTheStart: what a start prints leads to a page that knows who came.
func TestLoginLinkOfTheStart(t *testing.T) {
	cfg := settings(t)
	r, end := serve(t, cfg, daemon.Options{})
	c := browser(t, hostOf(t, r.URL))
	status, page := fetch(t, c, "GET", r.LoginURL, "")
	if status != 200 || !strings.Contains(page, "Sign in") {
		t.Fatalf("%d %s", status, page)
	}
	u, err := url.Parse(r.LoginURL)
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"ticket": {u.Query().Get("ticket")}}.Encode()
	status, page = fetch(t, c, "POST", r.URL+"/login", form)
	if status != 200 || !strings.Contains(page, "of the tenant default, with the scopes: *") {
		t.Fatalf("%d %s", status, page)
	}
	if status, text := fetch(t, c, "GET", r.URL+"/api/sandboxes", ""); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := fetch(t, browser(t, hostOf(t, r.URL)), "POST", r.URL+"/login", form); status != 401 {
		t.Errorf("a second time: %d", status)
	}
	if status, _ := fetch(t, c, "POST", r.URL+"/logout", ""); status != 204 {
		t.Errorf("signing out: %d", status)
	}
	if status, _ := fetch(t, c, "GET", r.URL+"/api/sandboxes", ""); status != 401 {
		t.Errorf("signed out: %d", status)
	}
	end()
	again, _ := serve(t, cfg, daemon.Options{})
	if again.LoginURL == r.LoginURL || again.LoginURL == "" {
		t.Errorf("a second start prints %q", again.LoginURL)
	}
}

func TestPreviewsOfThisServer(t *testing.T) {
	for name, tc := range map[string]struct {
		pairs  []string
		suffix string
		own    bool // a door of its own
	}{
		"own address": {[]string{"COVE_PREVIEW_ADDR", "127.0.0.1:0"}, ".localhost", true},
		"domain":      {[]string{"COVE_PREVIEW_DOMAIN", "preview.test"}, ".preview.test", false},
		"public":      {[]string{"COVE_PREVIEW_DOMAIN", "preview.test", "COVE_PUBLIC_URL", "http://cove.test:8080/base/"}, ".preview.test", false},
	} {
		t.Run(name, func(t *testing.T) {
			r, end := serve(t, settings(t, tc.pairs...), daemon.Options{})
			admin := adminOf(t, r)
			id := open(t, admin)
			p, err := admin.Processes(id).Start(t.Context(), cove.ExecRequest{Line: "serve 3000 hello"})
			if err != nil {
				t.Fatal(err)
			}
			l, err := admin.Links().Port(t.Context(), cove.PortLink{Session: id, Port: 3000})
			if err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse(l.URL)
			if err != nil || u.Hostname() != "3000-"+string(id)+tc.suffix {
				t.Fatalf("%s %v", l.URL, err)
			}
			at := hostOf(t, r.URL)
			if tc.own {
				at = "127.0.0.1:" + u.Port()
			} else if name == "domain" && u.Port() != strings.Split(at, ":")[1] || name == "public" && u.Port() != "8080" {
				t.Errorf("the port of %s", l.URL)
			}
			c := browser(t, at)
			eventually(t, func() bool {
				status, text := fetch(t, c, "GET", l.URL, "")
				return status == 200 && text == "hello"
			})
			// The API is not there, nor are previews on the API's own host.
			u.RawQuery, u.Path = "", "/api/sandboxes"
			u.Host = strings.Replace(u.Host, "3000-"+string(id), "x", 1)
			if status, text := fetch(t, c, "GET", u.String(), ""); status != 404 || !strings.HasPrefix(text, "Cove: ") {
				t.Errorf("the API on a preview's domain: %d %s", status, text)
			}
			login, err := admin.Links().Login(t.Context(), 0)
			if err != nil || name == "public" && !strings.HasPrefix(login.URL, "http://cove.test:8080/base/login?ticket=") {
				t.Errorf("%+v %v", login, err)
			}
			if err := admin.Processes(id).Signal(t.Context(), p.PID, "KILL"); err != nil {
				t.Error(err)
			}
			if err := admin.Close(); err != nil {
				t.Error(err)
			}
			end()
		})
	}
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	limit, tick := time.NewTimer(30*time.Second), time.NewTicker(5*time.Millisecond)
	defer limit.Stop()
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatal("it takes too long")
		}
	}
}

// TestPreviewsLeaveLocalhostToTheAPI: their hosts are below that name, and many
// clients know the server by it.
func TestPreviewsLeaveLocalhostToTheAPI(t *testing.T) {
	r, end := serve(t, settings(t, "COVE_PREVIEW_ADDR", "127.0.0.1:0"), daemon.Options{})
	defer end()
	at := hostOf(t, r.URL)
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	c := browser(t, at)
	for host, want := range map[string]int{"localhost": 200, "LOCALHOST.": 200, "x.localhost": 404} {
		if status, text := fetch(t, c, "GET", "http://"+host+":"+port+"/health", ""); status != want {
			t.Errorf("%s: %d %s", host, status, text)
		}
	}
}

// TestServerEndsPreviewsWhenItDrains: a WebSocket is nobody's request any more,
// and ends all the same.
func TestServerEndsPreviewsWhenItDrains(t *testing.T) {
	r, end := serve(t, settings(t, "COVE_PREVIEW_DOMAIN", "preview.test"), daemon.Options{})
	admin := adminOf(t, r)
	id := open(t, admin)
	answered := upgrade(t, admin.Processes(id))
	l, err := admin.Links().Port(t.Context(), cove.PortLink{Session: id, Port: 3000})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(l.URL)
	if err != nil {
		t.Fatal(err)
	}
	var conn net.Conn
	var in *bufio.Reader
	eventually(t, func() bool {
		if conn, err = net.Dial("tcp", hostOf(t, r.URL)); err != nil {
			t.Fatal(err)
		}
		in = bufio.NewReader(conn)
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+u.Host+"\r\nCookie: cove_preview="+u.Query().Get("cove_ticket")+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		resp, err := http.ReadResponse(in, nil) //nolint:bodyclose // a WebSocket is closed by itself
		if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
			return true
		}
		_ = conn.Close()
		return false
	})
	defer conn.Close()
	answered()
	if err := admin.Close(); err != nil {
		t.Error(err)
	}
	end()
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.ReadAll(in); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Error("the WebSocket is still open")
	}
}

// upgrade starts a server on port 3000 that agrees to one WebSocket when it is
// asked: an answer before the question is no HTTP. The function it returns waits
// until the answer was sent.
func upgrade(t *testing.T, ps cove.Processes) func() {
	t.Helper()
	p, err := ps.Start(t.Context(), cove.ExecRequest{Argv: []string{"nc", "-l", "-p", "3000"}, KeepStdin: true})
	if err != nil {
		t.Fatal(err)
	}
	var sent sync.WaitGroup
	sent.Go(func() {
		for _, err := range ps.Connect(t.Context(), p.PID, 0) {
			if err == nil {
				err = ps.Input(t.Context(), p.PID, []byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"), false)
			}
			if err != nil {
				t.Error(err)
			}
			return
		}
	})
	return sent.Wait
}

func TestLinksThatCannotBe(t *testing.T) {
	for name, tc := range map[string]struct {
		pairs []string
		mess  string
		words string
	}{
		"a domain that is the server's own": {pairs: []string{"COVE_PREVIEW_DOMAIN", "cove.test", "COVE_PUBLIC_URL", "https://cove.test"}, words: "COVE_PREVIEW_DOMAIN"},
		"an address of another machine":     {pairs: []string{"COVE_PREVIEW_ADDR", "192.0.2.1:8001"}, words: "COVE_PREVIEW_ADDR"},
		"a key that is none":                {mess: "link.key", words: "link.key"},
	} {
		cfg := settings(t, tc.pairs...)
		if tc.mess != "" {
			put(t, filepath.Join(cfg.Home, tc.mess), "x")
		}
		err := daemon.Serve(t.Context(), cfg, daemon.Options{Logger: slog.New(slog.DiscardHandler)})
		if cove.CodeOf(err) != cove.Invalid || !strings.Contains(err.Error(), tc.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	err = daemon.Serve(t.Context(), settings(t, "COVE_PREVIEW_ADDR", taken.Addr().String()), daemon.Options{Logger: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "COVE_PREVIEW_ADDR: "+taken.Addr().String()+" is in use") {
		t.Errorf("%v", err)
	}
}

// TestNoLinksOnDemand: a server that nobody can reach by a URL says so.
func TestNoLinksOnDemand(t *testing.T) {
	t.Chdir(".") // a server on demand goes elsewhere
	r, _ := serve(t, settings(t, "COVE_PREVIEW_ADDR", "127.0.0.1:0"), daemon.Options{OnDemand: true})
	if r.LoginURL != "" {
		t.Errorf("it prints %s", r.LoginURL)
	}
	c := dial(t, "unix://"+r.Socket, "")
	if _, err := c.Links().Login(t.Context(), 0); cove.CodeOf(err) != cove.Unsupported || !strings.Contains(cove.RemedyOf(err), "cove serve") {
		t.Errorf("%v", err)
	}
}

func TestReachable(t *testing.T) {
	for address, want := range map[string]string{
		"http://127.0.0.1:8000": "http://127.0.0.1:8000", "http://0.0.0.0:8000": "http://localhost:8000", "https://[::]:1": "https://localhost:1",
		"http://cove.test": "http://cove.test", "http://[::1]:80": "http://[::1]:80", "%": "%",
	} {
		if got := daemon.Reachable(address); got != want {
			t.Errorf("%s is reached at %s, want %s", address, got, want)
		}
	}
}
