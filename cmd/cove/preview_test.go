package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
)

// A real application in a real sandbox is shown to a browser: pages, its own
// login, events and a WebSocket. When the session ends, so does all of it.
func TestPreviewOfARealApplication(t *testing.T) {
	needLocal(t)
	_, err := os.Stat("/usr/bin/python3") // which the application is written for
	linuxtest.Need(t, err)
	t.Setenv("COVE_PREVIEW_ADDR", "127.0.0.1:0")
	home := filepath.Join(t.TempDir(), "home")
	end := server(t, home, "local")
	c := connect(t, home)
	id, at := application(t, c)
	b := previewBrowser(t, at)

	var page struct {
		Path    string
		Headers map[string]string
	}
	if !eventually(30*time.Second, func() bool {
		status, text := ask(t, b, at.String())
		return status == http.StatusOK && json.Unmarshal([]byte(text), &page) == nil
	}) {
		t.Fatal("the application does not answer")
	}
	front := *at
	front.RawQuery = ""
	_, text := ask(t, b, front.String()) // a second visit, with the cookies
	if err := json.Unmarshal([]byte(text), &page); err != nil {
		t.Fatal(err)
	}
	if page.Path != "/" || page.Headers["Cookie"] != "session=of-the-app" || page.Headers["Host"] != at.Host || page.Headers["Authorization"] != "" {
		t.Errorf("the application was asked for %+v", page)
	}
	if status, text := ask(t, b, front.JoinPath("/events").String()); status != http.StatusOK || text != "data: 0\n\ndata: 1\n\ndata: 2\n\n" {
		t.Errorf("events: %d %q", status, text)
	}
	ws := socket(t, b, &front)
	if err := c.Processes(id).Signal(t.Context(), 1, "TERM"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ws.Read(t.Context()); err == nil {
		t.Error("the WebSocket goes on without its application")
	}
	if !eventually(30*time.Second, func() bool { status, _ := ask(t, b, front.String()); return status == http.StatusBadGateway }) {
		t.Error("nobody listens, and no 502 says so")
	}
	if _, err := c.Sessions().Close(t.Context(), id, false); err != nil {
		t.Fatal(err)
	}
	if status, text := ask(t, b, front.String()); status != http.StatusNotFound {
		t.Errorf("after the session: %d %s", status, text)
	}
	end(syscall.SIGTERM)
}

// application starts one in a session, and returns the link to it.
func application(t *testing.T, c *client.Client) (cove.ID, *url.URL) {
	t.Helper()
	s, err := c.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.Open("testdata/preview/app.py")
	if err != nil {
		t.Fatal(err)
	}
	defer script.Close()
	if err := c.Files(s.ID).Write(t.Context(), "app.py", script, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Processes(s.ID).Start(t.Context(), cove.ExecRequest{Argv: []string{"/usr/bin/python3", "app.py", "3000"}}); err != nil {
		t.Fatal(err)
	}
	l, err := c.Links().Port(t.Context(), cove.PortLink{Session: s.ID, Port: 3000})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(l.URL)
	if err != nil {
		t.Fatal(err)
	}
	return s.ID, u
}

// previewBrowser has cookies and finds names below localhost here, as browsers do.
func previewBrowser(t *testing.T, at *url.URL) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+at.Port())
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: transport}
}

func ask(t *testing.T, c *http.Client, address string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer cove_secret")
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

// socket opens the application's WebSocket and lets it echo.
func socket(t *testing.T, c *http.Client, front *url.URL) *websocket.Conn {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), strings.Replace(front.JoinPath("/ws").String(), "http:", "ws:", 1), &websocket.DialOptions{ //nolint:bodyclose // a WebSocket is closed by itself
		HTTPClient: c, HTTPHeader: http.Header{"Origin": {front.Scheme + "://" + front.Host}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.CloseNow() })
	for _, word := range []string{"one", "two"} {
		if err := ws.Write(t.Context(), websocket.MessageText, []byte(word)); err != nil {
			t.Fatal(err)
		}
		if _, data, err := ws.Read(t.Context()); err != nil || string(data) != word {
			t.Fatalf("%q came back as %q, %v", word, data, err)
		}
	}
	return ws
}
