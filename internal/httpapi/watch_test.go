package httpapi_test

import (
	"context"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/httpapi"
)

// revocable is a server whose one caller can be sent away.
func revocable(t *testing.T) (r *rig, revoke func()) {
	t.Helper()
	r, end := endable(t)
	return r, func() { end(cove.Errorf(cove.Unauthenticated, "the key was revoked")) }
}

// endable is a server whose requests can be ended for a reason.
func endable(t *testing.T) (r *rig, end context.CancelCauseFunc) {
	t.Helper()
	gone, cut := context.WithCancelCause(context.Background())
	t.Cleanup(func() { cut(nil) })
	r = serve(t, func(c *httpapi.Config) {
		c.Watch = func(ctx context.Context, p cove.Principal) (context.Context, func()) {
			if p.Name != "tester" {
				t.Errorf("%q is watched", p.Name)
			}
			ctx, end := context.WithCancelCause(ctx)
			stop := context.AfterFunc(gone, func() { end(context.Cause(gone)) })
			return ctx, func() { stop(); end(nil) }
		}
	})
	return r, cut
}

// unending begins, says so, and ends with its context.
func unending[T any](ctx context.Context, begun chan<- struct{}, first ...T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range first {
			if !yield(v, nil) {
				return
			}
		}
		begun <- struct{}{}
		<-ctx.Done()
	}
}

func TestRevokedStreamsSaySo(t *testing.T) {
	for path, header := range map[string]string{
		"/api/sandboxes/x/files/watch": "text/event-stream",
		"/api/sandboxes/x/processes/1": "text/event-stream",
		"/api/events?follow=true":      "text/event-stream",
	} {
		t.Run(path, func(t *testing.T) {
			r, revoke := revocable(t)
			begun := make(chan struct{}, 1)
			r.fake.watch = func(ctx context.Context) iter.Seq2[cove.Change, error] { return unending(ctx, begun, cove.Change{}) }
			r.fake.events = func(ctx context.Context, _ cove.EventFilter) iter.Seq2[cove.Event, error] {
				return unending(ctx, begun, cove.Event{})
			}
			r.fake.connect = func(ctx context.Context, _ cove.PID, _ int64) iter.Seq2[cove.Chunk, error] {
				return unending(ctx, begun, cove.Chunk{Stream: cove.Stdout, Data: []byte("x")})
			}
			r.fake.wait = func(ctx context.Context, _ cove.PID) (*cove.Execution, error) { <-ctx.Done(); return nil, ctx.Err() }
			go func() { <-begun; revoke() }()
			a := r.send("GET", path, "", "Accept", header)
			tail := a.body[strings.LastIndex(a.body, "event: "):]
			if a.status != 200 || !strings.HasPrefix(tail, "event: error\n") || !strings.Contains(tail, `"code":"unauthenticated"`) ||
				!strings.Contains(tail, "the key was revoked") || strings.Contains(a.body, "event: end") {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
}

func TestRevokedAnswers(t *testing.T) {
	r, revoke := revocable(t)
	r.fake.exec = func(ctx context.Context, _ cove.ExecRequest) (*cove.Execution, error) {
		revoke()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	a := r.send("POST", "/api/sandboxes/x/execute", `{"command":"true"}`)
	if a.status != 401 || !strings.Contains(a.body, "the key was revoked") || a.header.Get("WWW-Authenticate") == "" {
		t.Errorf("%d %s", a.status, a.body)
	}
	// What was done all the same is answered: a caller may revoke its own key.
	r, revoke = revocable(t)
	r.fake.exec = func(context.Context, cove.ExecRequest) (*cove.Execution, error) {
		revoke()
		return &cove.Execution{}, nil
	}
	if a := r.send("POST", "/api/sandboxes/x/execute", `{"command":"true"}`); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestServerThatEndsSaysSo: its caller did not go away.
func TestServerThatEndsSaysSo(t *testing.T) {
	r, end := endable(t)
	r.fake.exec = func(ctx context.Context, _ cove.ExecRequest) (*cove.Execution, error) {
		end(cove.Errorf(cove.Unavailable, "the server is shutting down"))
		<-ctx.Done()
		return nil, ctx.Err()
	}
	a := r.send("POST", "/api/sandboxes/x/execute", `{"command":"true"}`)
	if a.status != 503 || !strings.Contains(a.body, "the server is shutting down") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestServerThatEndsWhileItLooksUpAKey: the caller did not go away there either.
func TestServerThatEndsWhileItLooksUpAKey(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	r := serve(t, func(c *httpapi.Config) {
		c.Authenticate = func(r *http.Request) (cove.Principal, func(), error) {
			end(cove.Errorf(cove.Unavailable, "the server is shutting down"))
			return cove.Principal{}, nil, cove.Wrap(cove.Canceled, r.Context().Err(), "keys cannot be looked up now; try again")
		}
	})
	answer := httptest.NewRecorder()
	r.server.Config.Handler.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/sandboxes/x/execute", strings.NewReader("{}")))
	if got := answer.Body.String(); answer.Code != 503 || !strings.Contains(got, "the server is shutting down") {
		t.Errorf("%d %s", answer.Code, got)
	}
}

func TestRevokedUpload(t *testing.T) {
	r, revoke := revocable(t)
	body, feed := io.Pipe()
	defer feed.Close()
	r.fake.write = func(_ context.Context, from io.Reader) error {
		first := make([]byte, 4)
		if _, err := io.ReadFull(from, first); err != nil {
			return err
		}
		revoke()
		_, err := io.Copy(io.Discard, from)
		return err
	}
	go func() { _, _ = feed.Write([]byte("half")) }()
	a := r.sendBody("PUT", "/api/sandboxes/x/files?path=f", body)
	if a.status != 401 || !strings.Contains(a.body, "the key was revoked") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// zeros is a file without an end; after its first piece something happens.
type zeros struct {
	pieces int
	then   func()
}

func (z *zeros) Read(p []byte) (int, error) {
	if z.pieces++; z.pieces > 1 {
		z.then()
	}
	clear(p)
	return len(p), nil
}

func (*zeros) Close() error { return nil }

func TestRevokedDownload(t *testing.T) {
	r, revoke := revocable(t)
	r.fake.read = func(int64, int64) (io.ReadCloser, error) { return &zeros{then: revoke}, nil }
	resp, err := r.server.Client().Do(r.request("GET", "/api/sandboxes/x/files?path=f", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); err == nil || n == 0 {
		t.Errorf("%d bytes look whole", n)
	}
}

func TestRevokedTunnel(t *testing.T) {
	r, revoke := revocable(t)
	inside, outside := net.Pipe()
	defer inside.Close()
	r.fake.dial = func() (net.Conn, error) { return outside, nil }
	conn, err := r.client.Ports("x").Dial(t.Context(), 80)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	revoke()
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Log(err)
	}
	if _, err := inside.Read(make([]byte, 1)); err == nil {
		t.Error("the connection inside is open")
	}
}

func TestRevokedTerminal(t *testing.T) {
	r, revoke := revocable(t)
	r.fake.shellLike()
	signals := make(chan cove.Signal, 2)
	r.fake.signal = func(sig cove.Signal) error {
		signals <- sig
		return cove.Errorf(cove.NotFound, "it has ended")
	}
	c := r.attach("")
	if err := c.Write(t.Context(), websocket.MessageBinary, []byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	if _, data, err := c.Read(t.Context()); err != nil || string(data) != "hello\n" {
		t.Fatalf("%q %v", data, err)
	}
	revoke()
	kind, data, err := c.Read(t.Context())
	if err != nil || kind != websocket.MessageText || !strings.Contains(string(data), `"type":"error"`) ||
		!strings.Contains(string(data), `"code":"unauthenticated"`) || !strings.Contains(string(data), "the key was revoked") {
		t.Errorf("%q %v", data, err)
	}
	if _, _, err := c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("%v", err)
	}
	if sig := <-signals; sig != "HUP" {
		t.Errorf("its program got %s", sig)
	}
}

// TestRevokedTerminalThatNeverReads is let go all the same.
func TestRevokedTerminalThatNeverReads(t *testing.T) {
	r, revoke := revocable(t)
	signals, full := make(chan cove.Signal, 2), make(chan struct{}, 1)
	r.fake.signal = func(sig cove.Signal) error {
		signals <- sig
		return cove.Errorf(cove.NotFound, "it has ended")
	}
	r.fake.connect = func(ctx context.Context, _ cove.PID, _ int64) iter.Seq2[cove.Chunk, error] {
		return func(yield func(cove.Chunk, error) bool) {
			for n := 0; ctx.Err() == nil && yield(cove.Chunk{Stream: cove.Stdout, Data: make([]byte, 1<<20)}, nil); n++ {
				if n == 1 {
					full <- struct{}{}
				}
			}
		}
	}
	r.attach("")
	<-full
	revoke()
	<-signals
}
