package preview_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/cove-sandbox/cove/internal/preview"
)

// accept is a program that takes a WebSocket's handshake and then does then.
func accept(then func(c net.Conn, in *bufio.Reader)) func(net.Conn) {
	return func(c net.Conn) {
		in := bufio.NewReader(c)
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSet-Cookie: wide=1; Domain=test\r\nX-Own: 1\r\n\r\n")
		then(c, in)
	}
}

// echoing is a program that echoes every byte after the handshake.
var echoing = accept(func(c net.Conn, in *bufio.Reader) { _, _ = io.Copy(c, in) })

// upgrade opens a connection that is a WebSocket's from here on.
func (r *rig) upgrade() (net.Conn, *bufio.Reader) {
	r.t.Helper()
	c, in := r.dial("GET /ws HTTP/1.1", "Connection: keep-alive, Upgrade", "Upgrade: WebSocket", "Sec-WebSocket-Key: x", "Sec-Fetch-Site: same-origin")
	resp, err := http.ReadResponse(in, nil) //nolint:bodyclose // a WebSocket is closed by itself
	if err != nil {
		r.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("X-Own") != "1" || resp.Header.Get("Set-Cookie") != "" {
		r.t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	return c, in
}

// ended demands that the other side closes a connection.
func ended(t *testing.T, c net.Conn, in io.Reader) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.Copy(io.Discard, in); isTimeout(err) {
		t.Fatal("the connection stays open")
	}
}

func isTimeout(err error) bool {
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout()
}

func TestWebSocket(t *testing.T) {
	r := start(t, echoing)
	c, in := r.upgrade()
	for _, word := range []string{"one\n", strings.Repeat("x", 100_000) + "\n"} {
		go func() { _, _ = io.WriteString(c, word) }()
		if got, err := in.ReadString('\n'); err != nil || got != word {
			t.Fatalf("%d bytes came back of %d: %v", len(got), len(word), err)
		}
	}
	_ = c.Close()
	r.settled()
}

// TestRealWebSocket speaks the whole protocol on both sides.
func TestRealWebSocket(t *testing.T) {
	app := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		c, err := websocket.Accept(w, req, nil) // which compares Origin and Host
		if err != nil {
			return
		}
		defer func() { _ = c.CloseNow() }()
		kind, data, err := c.Read(req.Context())
		if err == nil {
			_ = c.Write(req.Context(), kind, append([]byte("echo "), data...))
		}
		_ = c.Close(websocket.StatusNormalClosure, "")
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- app.Serve(l) }()
	defer func() { _ = app.Close(); <-over }()
	r := start(t, func(c net.Conn) {
		through, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return
		}
		defer through.Close()
		go func() { _, _ = io.Copy(through, c); _ = through.Close() }()
		_, _ = io.Copy(c, through)
	})
	ws, _, err := websocket.Dial(t.Context(), "ws://"+host()+"/ws", &websocket.DialOptions{ //nolint:bodyclose // a WebSocket is closed by itself
		HTTPHeader: http.Header{"Cookie": {"cove_preview=" + good}, "Origin": {"http://" + host()}},
		HTTPClient: &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, r.server.Listener.Addr().String())
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.CloseNow() }()
	if err := ws.Write(t.Context(), websocket.MessageText, []byte("hi")); err != nil {
		t.Fatal(err)
	}
	if _, data, err := ws.Read(t.Context()); err != nil || string(data) != "echo hi" {
		t.Errorf("%s %v", data, err)
	}
	_ = ws.Close(websocket.StatusNormalClosure, "")
	r.settled()
}

func TestOtherUpgradesAreNone(t *testing.T) {
	r := start(t, serving(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.WriteString(w, req.Header.Get("Connection")+"/"+req.Header.Get("Upgrade"))
	}))
	if a := r.send("GET", "/", "", "Connection", "Upgrade", "Upgrade", "h2c"); a.status != 200 || a.body != "close/" {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestEventStream: what a program says arrives when it says it.
func TestEventStream(t *testing.T) {
	next := make(chan struct{})
	r := start(t, func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
		<-next
		_, _ = io.WriteString(c, "data: 2\n\n")
	})
	c, in := r.dial("GET /events HTTP/1.1", "Accept: text/event-stream", "Connection: close")
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, "data: 1") {
			break
		}
	}
	close(next)
	if rest, err := io.ReadAll(in); err != nil || !strings.Contains(string(rest), "data: 2") {
		t.Errorf("%q %v", rest, err)
	}
	r.settled()
}

// flood is a program that sends for ever and reads nothing.
var flood = func(c net.Conn) {
	chunk := make([]byte, 32<<10)
	for {
		if _, err := c.Write(chunk); err != nil {
			return
		}
	}
}

func TestClientsThatNeverRead(t *testing.T) {
	short := func(c *preview.Config) { c.Stall = 50 * time.Millisecond }
	for name, program := range map[string]func(net.Conn){
		"WebSocket": accept(func(c net.Conn, _ *bufio.Reader) { flood(c) }),
		"answer": func(c net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
				flood(c)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, program, short)
			if name == "WebSocket" {
				r.upgrade()
			} else {
				r.dial("GET / HTTP/1.1")
			}
			r.settledAfterOne()
		})
	}
}

// settledAfterOne waits for the program to be asked, and then for it to be left
// alone.
func (r *rig) settledAfterOne() {
	r.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for r.dialed.Load() == 0 {
		<-tick.C
	}
	r.settled()
}

// TestProgramsThatNeverRead: what they are sent has its time as well.
func TestProgramsThatNeverRead(t *testing.T) {
	stay := make(chan struct{})
	defer close(stay)
	r := start(t, accept(func(net.Conn, *bufio.Reader) { <-stay }), func(c *preview.Config) { c.Stall = 50 * time.Millisecond })
	c, in := r.upgrade()
	go flood(c)
	ended(t, c, in)
	r.settled()
}

func TestQuietConnections(t *testing.T) {
	silent := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	quiet := func(c *preview.Config) { c.Quiet = 50 * time.Millisecond }
	t.Run("WebSocket", func(t *testing.T) {
		r := start(t, accept(func(c net.Conn, _ *bufio.Reader) { silent(c) }), quiet)
		c, in := r.upgrade()
		ended(t, c, in)
		r.settled()
	})
	t.Run("no answer", func(t *testing.T) {
		r := start(t, silent, quiet)
		if a := r.send("GET", "/", ""); a.status != 504 {
			t.Errorf("%d %s", a.status, a.body)
		}
		r.settled()
	})
	t.Run("no body", func(t *testing.T) {
		r := start(t, silent, func(c *preview.Config) { c.Stall = 50 * time.Millisecond })
		c, in := r.dial("POST / HTTP/1.1", "Content-Length: 10")
		ended(t, c, in)
		r.settled()
	})
}

func TestTicketEndsWhatItLetIn(t *testing.T) {
	t.Run("revoked", func(t *testing.T) {
		r := start(t, echoing, func(c *preview.Config) { c.Recheck = 10 * time.Millisecond })
		c, in := r.upgrade()
		if _, err := io.WriteString(c, "a\n"); err != nil {
			t.Fatal(err)
		}
		if got, err := in.ReadString('\n'); err != nil || got != "a\n" {
			t.Fatal(got, err)
		}
		r.revoked.Store(true)
		ended(t, c, in)
		r.settled()
		if a := r.send("GET", "/", ""); a.status != 401 {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
	t.Run("expired", func(t *testing.T) {
		stay := make(chan struct{})
		defer close(stay)
		r := start(t, func(net.Conn) { <-stay })
		r.expires = time.Now().Add(50 * time.Millisecond)
		if a := r.send("GET", "/", ""); a.status != 401 || !strings.Contains(a.body, "over") {
			t.Errorf("%d %s", a.status, a.body)
		}
		r.settled()
	})
}

func TestClientGoesAway(t *testing.T) {
	gone := make(chan struct{})
	r := start(t, func(c net.Conn) {
		_, _ = io.Copy(io.Discard, c)
		close(gone)
	})
	c, _ := r.dial("GET / HTTP/1.1")
	r.settledOpen()
	_ = c.Close()
	<-gone
	r.settled()
}

// settledOpen waits until the program is connected.
func (r *rig) settledOpen() {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for r.open.Load() == 0 {
		<-tick.C
	}
}

func TestLargeBodiesBothWays(t *testing.T) {
	r := start(t, func(c net.Conn) {
		req, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		_, _ = io.Copy(c, req.Body)
	})
	sent := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	if a := r.send("PUT", "/", sent); a.status != 200 || a.body != sent {
		t.Errorf("%d, %d bytes of %d", a.status, len(a.body), len(sent))
	}
	r.settled()
}
