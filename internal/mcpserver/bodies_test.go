package mcpserver_test

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/intake"
	"github.com/cove-sandbox/cove/internal/mcpserver"
)

// TestKeyBeforeMessage: a request without a key, and one that is announced as too long,
// is refused before a byte of the message has come.
func TestKeyBeforeMessage(t *testing.T) {
	world := newWorld(t)
	w := serve(t, mcpserver.Config{}, world.platform)
	for _, c := range []struct {
		key    string
		length int
		want   int
	}{{"wrong", 1000, 401}, {"boss", 4<<20 + 1, 413}} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", w.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", c.key, c.length)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = resp.Body.Close(), conn.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s: %d", c.key, resp.StatusCode)
		}
	}
}

// TestMessagesOfAKey: a key whose messages fill its share is told to come back, others
// are served, and afterwards nothing is left.
func TestMessagesOfAKey(t *testing.T) {
	bodies := intake.New()
	world := newWorld(t)
	w := serve(t, mcpserver.Config{Bodies: bodies}, world.platform)
	full := bodies.Body(boss)
	if err := full.Take(t.Context(), 10<<20); err != nil {
		t.Fatal(err)
	}
	if status, text, header := w.send(http.MethodPost, "boss", "", hello); status != http.StatusTooManyRequests || header.Get("Retry-After") != "1" || !strings.Contains(text, "that are under way hold 10m") {
		t.Errorf("%d %s", status, text)
	}
	if status, text, _ := w.send(http.MethodPost, "other", "", hello); status != http.StatusOK {
		t.Errorf("another key: %d %s", status, text)
	}
	full.Free()
	status, text, header := w.send(http.MethodPost, "boss", "", hello)
	if status != http.StatusOK {
		t.Fatalf("afterwards: %d %s", status, text)
	}
	session := header.Get("Mcp-Session-Id")
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_sessions","arguments":{}}}`
	if status, text, _ := w.send(http.MethodPost, "boss", session, call); status != http.StatusOK {
		t.Errorf("a call: %d %s", status, text)
	}
	if status, text, _ := w.send(http.MethodPost, "boss", session, `[`+strings.Repeat("0,", intake.MaxValues)+`0]`); status != http.StatusRequestEntityTooLarge || !strings.Contains(text, "65536 values") {
		t.Errorf("many values: %d %s", status, text)
	}
	whole := bodies.Body(boss)
	for whole.Take(t.Context(), 10<<20) != nil { // the server may not have seen the end of a request that was answered
		<-time.After(time.Millisecond)
		if t.Context().Err() != nil {
			t.Fatal("something is left")
		}
	}
	whole.Free()
}

// TestKeptMessages: what the SDK keeps as long as an MCP session is small.
func TestKeptMessages(t *testing.T) {
	world := newWorld(t)
	w := serve(t, mcpserver.Config{}, world.platform)
	large := strings.Repeat(" ", 16<<10)
	if status, text, _ := w.send(http.MethodPost, "boss", "", hello+large); !strings.Contains(text, "initialize is kept as long as the MCP session and has at most 16384 bytes") {
		t.Errorf("initialize: %d %s", status, text)
	}
	_, _, header := w.send(http.MethodPost, "boss", "", hello)
	session := header.Get("Mcp-Session-Id")
	level := `{"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"info"}}`
	if _, text, _ := w.send(http.MethodPost, "boss", session, level+large); !strings.Contains(text, "logging/setLevel is kept as long as") {
		t.Errorf("setLevel: %s", text)
	}
}

// TestCallHoldsItsMessage: a message stays charged as long as the call that came in it,
// though its client has left.
func TestCallHoldsItsMessage(t *testing.T) {
	bodies := intake.New()
	begun, end := make(chan struct{}), make(chan struct{})
	world := newWorld(t)
	w := serve(t, mcpserver.Config{Bodies: bodies}, func(p cove.Principal) cove.Platform { return slow{world.As(p), begun, end} })
	_, _, header := w.send(http.MethodPost, "boss", "", hello)
	session := header.Get("Mcp-Session-Id")
	const size = 1 << 20
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_sessions","arguments":{}}}` + strings.Repeat(" ", size)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", w.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer boss\r\nMcp-Session-Id: %s\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		session, len(call), call)
	<-begun
	_ = conn.Close()
	for w.underWay() > 0 { // until the server has seen that the client left
		<-time.After(time.Millisecond)
		if t.Context().Err() != nil {
			t.Fatal("the request is not over")
		}
	}
	rest := bodies.Body(boss)
	err = rest.Take(t.Context(), 10<<20-size)
	close(end)
	if err == nil {
		t.Fatal("the message is not charged any more")
	}
	for rest.Take(t.Context(), 10<<20) != nil {
		<-time.After(time.Millisecond)
		if t.Context().Err() != nil {
			t.Fatal("something is left")
		}
	}
	rest.Free()
}

// slow is a platform whose list of sessions takes until end is closed.
type slow struct {
	cove.Platform

	begun chan<- struct{}
	end   <-chan struct{}
}

func (s slow) Sessions() cove.Sessions { return slowSessions{s.Platform.Sessions(), s} }

type slowSessions struct {
	cove.Sessions

	slow slow
}

func (s slowSessions) List(ctx context.Context, f cove.SessionFilter) iter.Seq2[*cove.Session, error] {
	s.slow.begun <- struct{}{}
	<-s.slow.end
	return s.Sessions.List(ctx, f)
}
