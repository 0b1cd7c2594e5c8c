package preview_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/preview"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	domain  = "preview.test"
	good    = "good-ticket"
	other   = "ticket-of-another-port"
	revoked = "revoked-ticket"
)

var session = cove.NewID()

func host() string { return preview.Host(3000, session, domain) }

// inside is a platform whose sessions have one thing: a port that program
// answers.
type inside struct {
	cove.Platform

	dial func(ctx context.Context, id cove.ID, port int) (net.Conn, error)
}

type ports struct {
	inside

	id cove.ID
}

func (i inside) Ports(id cove.ID) cove.Ports { return ports{i, id} }

func (p ports) Dial(ctx context.Context, port int) (net.Conn, error) { return p.dial(ctx, p.id, port) }

// rig is a preview server on loopback in front of a program.
type rig struct {
	t       *testing.T
	server  *httptest.Server
	log     strings.Builder
	revoked atomic.Bool
	done    atomic.Int32 // requests that are over
	open    atomic.Int32 // connections to the program
	dialed  atomic.Int32
	expires time.Time
}

// counted counts a connection as open until it is closed.
type counted struct {
	net.Conn

	once sync.Once
	open *atomic.Int32
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.open.Add(-1) })
	return err
}

// start serves previews of a program, which gets each connection.
func start(t *testing.T, program func(net.Conn), change ...func(*preview.Config)) *rig {
	t.Helper()
	r := &rig{t: t, expires: time.Now().Add(time.Hour)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				program(c)
			})
		}
	})
	dial := func(ctx context.Context, id cove.ID, port int) (net.Conn, error) {
		if id != session || port != 3000 {
			t.Errorf("port %d of %s was dialed", port, id)
		}
		c, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		r.dialed.Add(1)
		r.open.Add(1)
		return &counted{Conn: c, open: &r.open}, nil
	}
	cfg := preview.Config{
		Domain: domain, Redeem: r.redeem, Logger: slog.New(slog.NewTextHandler(&r.log, nil)),
		Platform: func(p cove.Principal) cove.Platform {
			if p.Name != "owner" {
				t.Errorf("the platform is bound to %q", p.Name)
			}
			return inside{dial: dial}
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	h := preview.New(cfg)
	var visits sync.WaitGroup // those of WebSockets are not waited for by the server
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		visits.Add(1)
		defer visits.Done()
		h.ServeHTTP(w, req)
	}))
	t.Cleanup(func() {
		r.server.CloseClientConnections()
		r.server.Close()
		_ = l.Close()
		all.Wait()
		visits.Wait()
		if strings.Contains(r.log.String(), "ticket") || strings.Contains(r.log.String(), "secret-path") {
			t.Errorf("the log has a ticket or a path:\n%s", r.log.String())
		}
	})
	return r
}

func (r *rig) redeem(_ context.Context, ticket string, kind cove.GrantKind) (g cove.Grant, p cove.Principal, done func(), err error) {
	bad := cove.Errorf(cove.Unauthenticated, "the link is not good").Remedy("ask for a new one")
	if kind != cove.GrantPort {
		return g, p, nil, bad
	}
	g = cove.Grant{Kind: kind, Session: session, Port: 3000, ExpiresAt: r.expires}
	p = cove.Principal{Name: "owner", Tenant: "acme"}
	switch {
	case ticket == other:
		g.Port = 3001
	case ticket != good || r.revoked.Load():
		return cove.Grant{}, cove.Principal{}, nil, bad
	}
	return g, p, func() { r.done.Add(1) }, nil
}

// serving is a program that answers HTTP with h.
func serving(h http.HandlerFunc) func(net.Conn) {
	return func(c net.Conn) {
		req, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		w := httptest.NewRecorder()
		h(w, req)
		resp := w.Result()
		resp.Proto, resp.ProtoMajor, resp.ProtoMinor = "HTTP/1.1", 1, 1
		_ = resp.Write(c)
	}
}

// raw is a program that reads a request's head and answers with text as it is.
func raw(text string) func(net.Conn) {
	return func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.WriteString(c, text)
		}
	}
}

type answer struct {
	status  int
	header  http.Header
	body    string
	trailer http.Header
}

// send makes a request with the cookie; pairs are more headers, and one with an
// empty value takes one away.
func (r *rig) send(method, path, body string, pairs ...string) answer {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.server.URL+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Host = host()
	req.Header.Set("Cookie", "cove_preview="+good)
	for i := 0; i+1 < len(pairs); i += 2 {
		switch {
		case pairs[i] == "Host":
			req.Host = pairs[i+1]
		case pairs[i+1] == "":
			req.Header.Del(pairs[i])
		default:
			req.Header.Set(pairs[i], pairs[i+1])
		}
	}
	resp, err := (&http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}).Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(data), resp.Trailer}
}

// dial opens a connection and sends a request's head with the cookie.
func (r *rig) dial(lines ...string) (net.Conn, *bufio.Reader) {
	r.t.Helper()
	c, err := net.Dial("tcp", r.server.Listener.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	head := append([]string{lines[0], "Host: " + host(), "Cookie: cove_preview=" + good}, lines[1:]...)
	if _, err := io.WriteString(c, strings.Join(head, "\r\n")+"\r\n\r\n"); err != nil {
		r.t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

// settled waits until nobody is connected to the program any more.
func (r *rig) settled() {
	r.t.Helper()
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for r.open.Load() > 0 {
		select {
		case <-tick.C:
		case <-limit.C:
			r.t.Fatalf("%d connections to the program are left", r.open.Load())
		}
	}
}
