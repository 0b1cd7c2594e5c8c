package preview

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
)

// statuses are those of what goes wrong before a program answers.
var statuses = map[cove.Code]int{
	cove.Invalid: http.StatusBadRequest, cove.Unauthenticated: http.StatusUnauthorized, cove.Denied: http.StatusForbidden,
	cove.NotFound: http.StatusNotFound, cove.Conflict: http.StatusConflict, cove.Exhausted: http.StatusTooManyRequests,
	cove.Unsupported: http.StatusNotImplemented, cove.Unavailable: http.StatusBadGateway, cove.Timeout: http.StatusGatewayTimeout,
	cove.Canceled: 499, cove.Internal: http.StatusInternalServerError,
}

// answer is the way out to a client, who may not take what comes.
type answer struct {
	http.ResponseWriter

	control *http.ResponseController
	stall   time.Duration
	beat    func() // told that something went through; nil before it can
	status  int
	bytes   atomic.Int64

	mu       sync.Mutex
	hijacked net.Conn // guarded by mu
	over     bool     // guarded by mu
	refusing bool     // guarded by mu; our own word must still get out
}

// Unwrap lets http.ResponseController reach the server's own writer.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader implements http.ResponseWriter. What comes before an answer is left
// out: it is not looked at as answers are.
func (a *answer) WriteHeader(status int) {
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		return
	}
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	_ = a.control.SetWriteDeadline(time.Now().Add(a.stall)) // writers without deadlines are those of tests
	n, err := a.ResponseWriter.Write(p)
	a.took(n)
	return n, err
}

func (a *answer) took(n int) {
	a.bytes.Add(int64(n))
	if n > 0 && a.beat != nil {
		a.beat()
	}
}

// Hijack implements http.Hijacker. The connection ends with the visit.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := a.control.Hijack()
	if err != nil {
		return nil, nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status, a.hijacked = http.StatusSwitchingProtocols, conn
	if a.over {
		_ = conn.Close()
	}
	// What the client has sent ahead would be lost with the buffer.
	ahead, _ := buffered.Reader.Peek(buffered.Reader.Buffered()) // it is there
	out := &watched{Conn: conn, stall: a.stall, beat: a.beat, sent: &a.bytes, first: bytes.NewReader(ahead)}
	return out, bufio.NewReadWriter(buffered.Reader, bufio.NewWriter(out)), nil
}

// cut ends what waits for the client.
func (a *answer) cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	if a.hijacked != nil {
		_ = a.hijacked.Close()
		return
	}
	if a.refusing {
		return
	}
	past := time.Unix(1, 0)
	_, _ = a.control.SetReadDeadline(past), a.control.SetWriteDeadline(past)
}

// patient returns r with a body that may take its time, but not for ever.
func (a *answer) patient(r *http.Request) *http.Request {
	if r.Body == http.NoBody {
		return r
	}
	// Also for what the program does not read: the server throws it away.
	_ = a.control.SetReadDeadline(time.Now().Add(a.stall))
	r.Body = &body{ReadCloser: r.Body, a: a}
	return r
}

// body is what a client sends.
type body struct {
	io.ReadCloser

	a *answer
}

func (b *body) Read(p []byte) (int, error) {
	_ = b.a.control.SetReadDeadline(time.Now().Add(b.a.stall))
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.a.beat()
	}
	if errors.Is(err, io.EOF) {
		// The server watches the connection for the client going away; a deadline
		// left behind would look like that.
		_ = b.a.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// plain is what people read of a request that no program answered.
func plain(_ cove.ID, _ int, err error) (status int, contentType, text string) {
	status, ok := statuses[cove.CodeOf(err)]
	if !ok {
		status = http.StatusInternalServerError
	}
	text = "Cove: " + cove.MessageOf(err) + "\n"
	if remedy := cove.RemedyOf(err); remedy != "" {
		text += remedy + "\n"
	}
	return status, "text/plain; charset=utf-8", text
}

// refuse answers in place of a program.
func (v *visit) refuse(err error) {
	a := v.w
	if a.status != 0 {
		return
	}
	say := v.cfg.Refusal
	if say == nil {
		say = plain
	}
	status, kind, text := say(v.at.session, v.at.port, err)
	head := a.Header()
	clear(head)
	head.Set("Content-Type", kind)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Content-Security-Policy", "default-src 'none'")
	head.Set("Cache-Control", "no-store")
	if status == http.StatusTooManyRequests {
		head.Set("Retry-After", "1")
	}
	a.mu.Lock()
	a.refusing = true
	a.mu.Unlock()
	a.WriteHeader(status)
	_, _ = io.WriteString(a, text) // the client may be gone
}

// watched is a connection whose other side must take what is sent to it.
type watched struct {
	net.Conn

	stall time.Duration
	beat  func()
	sent  *atomic.Int64 // counts what is written, if not nil
	first *bytes.Reader // read before the connection, if not nil
}

// Read implements net.Conn.
func (w *watched) Read(p []byte) (int, error) {
	if w.first != nil && w.first.Len() > 0 {
		return w.first.Read(p)
	}
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.beat()
	}
	return n, err
}

// Write implements net.Conn.
func (w *watched) Write(p []byte) (int, error) {
	_ = w.SetWriteDeadline(time.Now().Add(w.stall)) // one that has none ends when all is quiet
	n, err := w.Conn.Write(p)
	if w.sent != nil {
		w.sent.Add(int64(n))
	}
	if n > 0 {
		w.beat()
	}
	return n, err
}
