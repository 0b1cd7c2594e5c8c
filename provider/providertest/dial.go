package providertest

import (
	"context"
	"io"
	"net"
	"strings"

	"github.com/cove-sandbox/cove"
)

func dialTests() []test {
	return []test{
		{"reaches_a_server", dialReaches},
		{"nobody_listens_is_unavailable", dialNobody},
		{"port_that_is_none_is_invalid", dialBadPort},
		{"ends_with_the_sandbox", dialEnds},
	}
}

const dialPort = 8080

// server answers HTTP on the port with whatever the sandbox has for it.
const server = `mkdir -p www && cd www && echo hello from inside > index.html
if command -v serve > /dev/null 2>&1; then exec serve 8080 "$(cat index.html)"; fi
exec python3 -m http.server 8080 --bind 127.0.0.1`

func (e *env) dialable() (cove.Sandbox, cove.Dialer) {
	e.Helper()
	e.needsPower(cove.PowerDial)
	s := e.sandbox()
	return s, as[cove.Dialer](e, s)
}

// dial connects as soon as somebody listens.
func (e *env) dial(s cove.Sandbox, d cove.Dialer) net.Conn {
	e.Helper()
	ctx := e.ctx()
	for {
		conn, err := d.Dial(ctx, dialPort)
		if err == nil {
			return conn
		}
		e.wants(cove.Unavailable, err, "dialing before the server is up")
		if e.Failed() {
			e.FailNow()
		}
		e.sh(s, "sleep 0.02") // the sandbox's own clock, so that it gets time to start
	}
}

func dialReaches(e *env) {
	s, d := e.dialable()
	e.start(s, shell(server))
	for range 3 {
		conn := e.dial(s, d)
		_, err := io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
		e.must(err, "send a request")
		answer, err := io.ReadAll(conn)
		e.must(err, "read the answer")
		if !strings.Contains(string(answer), " 200 ") || !strings.Contains(string(answer), "hello from inside") {
			e.Errorf("the answer is %q", clip(string(answer)))
		}
		e.check(conn.Close(), "close")
	}
}

func dialNobody(e *env) {
	s, d := e.dialable()
	_, err := d.Dial(e.ctx(), 9)
	e.wants(cove.Unavailable, err, "dialing a port nobody listens on")
	ctx, cancel := context.WithCancel(e.ctx())
	cancel()
	_, err = d.Dial(ctx, 9)
	e.wants(cove.Canceled, err, "dialing with a context that has ended")
	e.must(s.Destroy(e.ctx()), "destroy")
	_, err = d.Dial(e.ctx(), 9)
	e.wants(cove.NotFound, err, "dialing into a sandbox that is gone")
}

func dialBadPort(e *env) {
	_, d := e.dialable()
	for _, port := range []int{0, -1, 65536} {
		_, err := d.Dial(e.ctx(), port)
		e.wants(cove.Invalid, err, "dialing a port that is none")
	}
}

func dialEnds(e *env) {
	s, d := e.dialable()
	e.start(s, shell(server))
	conn := e.dial(s, d)
	e.must(s.Destroy(e.ctx()), "destroy")
	if b, err := io.ReadAll(conn); len(b) > 0 {
		e.Errorf("a connection into a sandbox that is gone gave %q, %v", b, err)
	}
	e.check(conn.Close(), "close")
}
