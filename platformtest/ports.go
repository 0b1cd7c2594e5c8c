package platformtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/cove-sandbox/cove"
)

func portCases() []testCase {
	return []testCase{
		{"dial", dial},
		{"nobody_listens", nobodyListens},
		{"bad_ports", badPorts},
	}
}

// serveLine is the in-process provider's own program that listens.
func serveLine(port int, text string) string { return fmt.Sprintf("serve %d %s", port, text) }

func dial(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.needs(cove.PowerDial)
	serve := r.h.Extras().Serve
	if serve == nil {
		t.Skip("no program that listens is known here")
	}
	p := r.user("acme")
	id, other := r.session(p, cove.Spec{}).ID, r.session(p, cove.Spec{}).ID
	pid := r.background(p, id, cove.ExecRequest{Line: serve(8080, "hello")})
	for range 2 {
		var conn net.Conn
		r.eventually("the port answers", func() bool {
			c, err := p.Ports(id).Dial(r.ctx, 8080)
			if err != nil {
				wantCode(t, err, cove.Unavailable)
			}
			conn = c
			return err == nil
		})
		same(t, "what the program answers", r.ask(conn), "hello")
	}
	_, err := p.Ports(other).Dial(r.ctx, 8080)
	wantCode(t, err, cove.Unavailable)
	r.must(p.Processes(id).Signal(r.ctx, pid, "KILL"), "signal")
	r.wait(p, id, pid)
}

// ask sends one HTTP request and returns the body of its answer.
func (r *rig) ask(conn net.Conn) string {
	r.t.Helper()
	if deadline, ok := r.ctx.Deadline(); ok {
		r.must(conn.SetDeadline(deadline), "set a deadline")
	}
	_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: inside\r\nConnection: close\r\n\r\n")
	r.must(err, "send a request")
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	r.must(err, "read the answer")
	text, err := io.ReadAll(answer.Body)
	r.must(err, "read the answer's body")
	r.must(answer.Body.Close(), "close the answer's body")
	r.must(conn.Close(), "hang up")
	return string(text)
}

func nobodyListens(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.needs(cove.PowerDial)
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	_, err := p.Ports(id).Dial(r.ctx, 9)
	wantCode(t, err, cove.Unavailable)
	r.stop(p, id)
	_, err = p.Ports(id).Dial(r.ctx, 9)
	wantReason(t, err, cove.Conflict, cove.ReasonSessionStopped)
}

func badPorts(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	for _, port := range []int{0, -1, 65536} {
		_, err := p.Ports(id).Dial(r.ctx, port)
		wantCode(t, err, cove.Invalid)
	}
}
