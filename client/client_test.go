package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
)

const secret = "cove_thesecret"

func TestNewRefuses(t *testing.T) {
	for _, address := range []string{
		"", "localhost:8000", "ftp://host", "http://", "http:///path", "http://user:pass@host", "http://host?x=1", "http://host#x",
		"unix://", "unix://host/path", "unix:relative", "http://[::1", "://", "http://a b",
	} {
		if _, err := client.New(address, ""); !errors.Is(err, cove.Invalid) || !errors.Is(err, cove.ErrConfiguration) || strings.Contains(err.Error(), "pass") {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, key := range []string{"a b", "a\n", "ключ"} {
		if _, err := client.New("http://host", key); !errors.Is(err, cove.Invalid) || !errors.Is(err, cove.ErrConfiguration) || strings.Contains(err.Error(), key) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

// dialed returns a client of a handler.
func dialed(t *testing.T, h http.HandlerFunc, opts ...client.Option) *client.Client {
	t.Helper()
	s := httptest.NewServer(h)
	c, err := client.New(s.URL+"/", secret, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		s.CloseClientConnections()
		s.Close()
	})
	return c
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + l.Addr().String()
	_ = l.Close()
	for _, address := range []string{address, "unix://" + filepath.Join(t.TempDir(), "none.sock")} {
		c, err := client.New(address, secret)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Sessions().Get(t.Context(), "x")
		if !errors.Is(err, cove.Unavailable) || !errors.Is(err, cove.ErrConnection) || !strings.Contains(cove.MessageOf(err), address) || !strings.Contains(cove.RemedyOf(err), "cove serve") || strings.Contains(err.Error(), secret) {
			t.Errorf("%v, remedy %q", err, cove.RemedyOf(err))
		}
		if _, err := c.Ports("x").Dial(t.Context(), 80); !errors.Is(err, cove.Unavailable) {
			t.Errorf("%v", err)
		}
		_ = c.Close()
		_ = c.Close()
	}
}

// foreign calls methods of every kind and returns their errors.
func foreign(t *testing.T, c *client.Client) map[string]error {
	t.Helper()
	errs := map[string]error{}
	_, errs["session"] = c.Sessions().Get(t.Context(), "x")
	_, errs["open"] = c.Sessions().Open(t.Context(), cove.OpenRequest{OnFull: cove.WaitWhenFull, OnQueue: func(int) {}})
	_, errs["exec"] = c.Processes("x").Exec(t.Context(), cove.ExecRequest{Line: "x"})
	_, errs["stream"] = c.Processes("x").Exec(t.Context(), cove.ExecRequest{Line: "x", OnOutput: func(cove.Chunk) {}})
	_, errs["code"] = c.Contexts("x").Run(t.Context(), cove.CodeRequest{Language: "x", OnOutput: func(cove.Chunk) {}})
	_, errs["read"] = c.Files("x").Read(t.Context(), "f", 0, 0)
	errs["write"] = c.Files("x").Write(t.Context(), "f", strings.NewReader("x"), 0)
	_, errs["dial"] = c.Ports("x").Dial(t.Context(), 80)
	for _, err := range c.Files("x").List(t.Context(), ".", 1) {
		errs["list"] = err
	}
	for _, err := range c.Sessions().List(t.Context(), cove.SessionFilter{}) {
		errs["sessions"] = err
	}
	for _, err := range c.Processes("x").Connect(t.Context(), 1, 0) {
		errs["connect"] = err
	}
	_, err := c.Runs().Get(t.Context(), "r")
	errs["run"] = err
	_, _, errs["key"] = c.Admin().CreateKey(t.Context(), cove.KeyRequest{})
	return errs
}

// TestNotCove: what answers there may be anything.
func TestNotCove(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"html": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			say(w, "<html>")
		},
		"html that failed": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusBadGateway) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://example.com/", http.StatusFound)
		},
		"other problem": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			say(w, `{"title":"other","status":409}`)
		},
		"broken problem": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			say(w, `{`)
		},
		"huge problem": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			_, _ = io.Copy(w, io.LimitReader(spaces{}, 8<<20))
		},
		"broken json": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", r.Header.Get("Accept"))
			say(w, "event: exit\ndata: {\n\nevent: stdout\ndata: [\n\n")
		},
		"broken event": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", r.Header.Get("Accept"))
			say(w, "event: error\ndata: {}\n\n")
		},
		"nothing": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) },
	} {
		t.Run(name, func(t *testing.T) {
			for call, err := range foreign(t, dialed(t, h)) {
				if call == "read" && strings.HasPrefix(name, "broken ") && err == nil {
					continue // bytes are bytes
				}
				if !errors.Is(err, cove.Unavailable) || cove.RemedyOf(err) == "" {
					t.Errorf("%s: %v", call, err)
				}
			}
		})
	}
}

// say answers; the client may be gone.
func say(w io.Writer, text string) { _, _ = io.WriteString(w, text) }

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// TestHugeAnswer: an answer without an end is given up.
func TestHugeAnswer(t *testing.T) {
	c := dialed(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Accept"))
		for r.Context().Err() == nil {
			if _, err := io.CopyN(w, spaces{}, 1<<20); err != nil {
				return
			}
		}
	})
	if _, err := c.Sessions().Get(t.Context(), "x"); !errors.Is(err, cove.Unavailable) {
		t.Error(err)
	}
	for _, err := range c.Files("x").Watch(t.Context(), ".") {
		if !errors.Is(err, cove.Unavailable) {
			t.Error(err)
		}
	}
}

// TestEmptyObjects: JSON that says nothing is not a session.
func TestEmptyObjects(t *testing.T) {
	c := dialed(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Accept"))
		if r.Header.Get("Accept") == "application/json" {
			say(w, `{"items":[{}],"next_cursor":"x","request":{"max_rows":-1},"defaults":{"pids_limit":-1}}`)
			return
		}
		say(w, "event: queue\ndata: [\n\nevent: session\ndata: {}\n\n")
	})
	errs := foreign(t, c)
	for _, call := range []string{"session", "open", "sessions", "run", "key"} {
		if !errors.Is(errs[call], cove.Unavailable) {
			t.Errorf("%s: %v", call, errs[call])
		}
	}
}

func TestBrokenOff(t *testing.T) {
	var body string
	c := dialed(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Accept"))
		say(w, body)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) //nolint:forbidigo // breaks the connection off
	})
	body = "{"
	if _, err := c.Sessions().Get(t.Context(), "x"); !errors.Is(err, cove.Unavailable) || !errors.Is(err, cove.ErrConnection) || !strings.Contains(err.Error(), "broke off") {
		t.Error(err)
	}
	body = "event: stdout\ndata: {\"data\":\"x\"}\n\n"
	_, err := c.Processes("x").Exec(t.Context(), cove.ExecRequest{Line: "x", OnOutput: func(cove.Chunk) {}})
	if !errors.Is(err, cove.Unavailable) || !errors.Is(err, cove.ErrConnection) || !strings.Contains(err.Error(), "broke off") {
		t.Error(err)
	}
}

// TestStreamWithoutItsEnd: a stream that just stops is not taken for whole.
func TestStreamWithoutItsEnd(t *testing.T) {
	c := dialed(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		say(w, "event: stdout\ndata: {\"data\":\"x\"}\n\nevent: file\ndata: {}\n\nevent: news\ndata: x\n\n")
	})
	for call, seq := range map[string]func(yield func(error) bool){
		"connect": func(yield func(error) bool) {
			for _, err := range c.Processes("x").Connect(t.Context(), 1, 0) {
				yield(err)
			}
		},
		"list": func(yield func(error) bool) {
			for _, err := range c.Files("x").List(t.Context(), ".", 1) {
				yield(err)
			}
		},
	} {
		n := 0
		var last error
		seq(func(err error) bool {
			n++
			last = err
			return true
		})
		if n != 2 || !errors.Is(last, cove.Unavailable) {
			t.Errorf("%s: %d elements, then %v", call, n, last)
		}
	}
}

// TestSilence: a server that gives no sign of life is given up.
func TestSilence(t *testing.T) {
	c := dialed(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}, client.WithSilence(10*time.Millisecond))
	_, err := c.Processes("x").Exec(t.Context(), cove.ExecRequest{Line: "x", OnOutput: func(cove.Chunk) {}})
	if !errors.Is(err, cove.Unavailable) || !strings.Contains(err.Error(), "sign of life") {
		t.Error(err)
	}
}

// TestCursorsThatLeadNowhere: a server cannot keep a client for ever.
func TestCursorsThatLeadNowhere(t *testing.T) {
	var asked atomic.Int32
	c := dialed(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		say(w, `{"items":[],"next_cursor":"again"}`)
	})
	for range c.Sessions().List(t.Context(), cove.SessionFilter{}) {
		t.Error("there is an element")
	}
	if asked.Load() != 1 {
		t.Errorf("it was asked %d times", asked.Load())
	}
}

// TestWhatHasNoForm: requests that cannot travel are refused here.
func TestWhatHasNoForm(t *testing.T) {
	c := dialed(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	ctx := t.Context()
	_, errGet := c.Sessions().Get(ctx, "")
	_, errClose := c.Sessions().Close(ctx, "", false)
	_, errTenant := c.Admin().Tenant(ctx, "")
	_, errTask := c.Admin().ControlTask(ctx, "", "dance")
	_, errBoth := c.Processes("x").Exec(ctx, cove.ExecRequest{Line: "a", Argv: []string{"b"}})
	_, errBothStart := c.Processes("x").Start(ctx, cove.ExecRequest{Line: "a", Argv: []string{"b"}})
	_, errBytes := c.Processes("x").Exec(ctx, cove.ExecRequest{Line: "a\xff"})
	_, errBytesIn := c.Processes("x").Exec(ctx, cove.ExecRequest{Line: "a\xff", Stdin: io.LimitReader(spaces{}, 1)})
	_, errKey := c.Sessions().Open(ctx, cove.OpenRequest{IdempotencyKey: "a\nb"})
	_, errUser := c.Sessions().Open(ctx, cove.OpenRequest{Spec: cove.Spec{User: "\xff"}})
	for name, e := range map[string]struct {
		err  error
		code cove.Code
	}{
		"get": {errGet, cove.NotFound}, "close": {errClose, cove.NotFound}, "revoke": {c.Admin().RevokeKey(ctx, ""), cove.NotFound},
		"tenant": {errTenant, cove.Invalid}, "set tenant": {c.Admin().SetTenant(ctx, cove.Tenant{}), cove.Invalid}, "task": {errTask, cove.Invalid},
		"both": {errBoth, cove.Invalid}, "both started": {errBothStart, cove.Invalid}, "bytes": {errBytes, cove.Invalid}, "bytes with input": {errBytesIn, cove.Invalid},
		"key": {errKey, cove.Invalid}, "user": {errUser, cove.Invalid},
	} {
		if !errors.Is(e.err, e.code) {
			t.Errorf("%s: %v", name, e.err)
		}
	}
}

func TestTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 || r.Header.Get("Authorization") != "Bearer "+secret {
			t.Errorf("%s with %v", r.Proto, r.Header)
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer s.Close()
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	c, err := client.New(s.URL, secret, client.WithTLSConfig(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Snapshots().Delete(t.Context(), "x"); err != nil {
		t.Error(err)
	}
	wary, err := client.New(s.URL, secret)
	if err != nil {
		t.Fatal(err)
	}
	defer wary.Close()
	if err := wary.Snapshots().Delete(t.Context(), "x"); !errors.Is(err, cove.Unavailable) {
		t.Errorf("a server that nobody vouches for: %v", err)
	}
}

func TestConnectionsAreReused(t *testing.T) {
	var conns atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	c, err := client.New(s.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 10 {
		if err := c.Runs().Delete(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections for 10 requests", n)
	}
}

func TestContextThatHasEnded(t *testing.T) {
	c := dialed(t, func(http.ResponseWriter, *http.Request) {})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cove.Errorf(cove.Denied, "because"))
	if _, err := c.Sessions().Get(ctx, "x"); !errors.Is(err, cove.Denied) {
		t.Errorf("a cause of ours: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := c.Sessions().Get(ctx, "x"); !errors.Is(err, cove.Canceled) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
