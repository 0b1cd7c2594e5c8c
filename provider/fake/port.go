package fake

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/cove-sandbox/cove"
)

// Bounds on what a client of serve can make wait.
const (
	backlog    = 16  // connections
	maxHeaders = 100 // lines
)

// listener is a port that a program listens on.
type listener struct {
	conns chan net.Conn
	gone  chan struct{}
	once  sync.Once
}

func (l *listener) shut() { l.once.Do(func() { close(l.gone) }) }

// listen takes a port for a process.
func (m *machine) listen(port int) (*listener, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ports[port] != nil {
		return nil, syscall.EADDRINUSE
	}
	l := &listener{conns: make(chan net.Conn, backlog), gone: make(chan struct{})}
	m.ports[port] = l
	return l, nil
}

// unlisten gives a port back and closes what nobody accepted.
func (m *machine) unlisten(port int, l *listener) {
	m.mu.Lock()
	if m.ports[port] == l {
		delete(m.ports, port)
	}
	m.mu.Unlock()
	l.shut()
	for {
		select {
		case c := <-l.conns:
			_ = c.Close()
		default:
			return
		}
	}
}

// dial connects to a port.
func (m *machine) dial(ctx context.Context, port int) (net.Conn, error) {
	m.mu.Lock()
	l := m.ports[port]
	m.mu.Unlock()
	nobody := cove.Errorf(cove.Unavailable, "nothing listens on port %d inside the sandbox; start a server there first", port)
	if l == nil {
		return nil, nobody
	}
	ours, theirs := net.Pipe()
	var err error = nobody
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.gone:
	case <-ctx.Done():
		err = ctx.Err()
	}
	_ = ours.Close()
	_ = theirs.Close()
	return nil, err
}

// accept waits for a connection. It is closed when the process ends.
func (l *listener) accept(p *proc) (net.Conn, error) {
	if err := p.step(); err != nil {
		return nil, err
	}
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.gone:
		return nil, errDead
	case <-p.dead:
		return nil, errDead
	}
}

// serving runs fn with a connection that dies with the process.
func serving(p *proc, conn net.Conn, fn func()) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-p.dead:
		case <-stop:
		}
		_ = conn.Close()
	})
	fn()
	close(stop)
	wg.Wait()
}

// runServe answers every HTTP request on a port with a text: serve PORT TEXT. It says
// so as soon as the port can be dialed, as servers do.
func runServe(c *call) int {
	if len(c.args) < 2 {
		return c.complain("usage: serve port [text]")
	}
	l, port, err := c.listen(c.args[1])
	if err != nil {
		return c.fault(c.args[1], err)
	}
	defer c.p.m.unlisten(port, l)
	if code := c.say("serving port " + c.args[1]); code != 0 {
		return code
	}
	body := strings.Join(c.args[2:], " ")
	for {
		conn, err := l.accept(c.p)
		if err != nil {
			return 1
		}
		go serving(c.p, conn, func() {
			if c.p.step() == nil {
				answer(conn, body)
			}
		})
	}
}

func answer(conn net.Conn, body string) {
	in := bufio.NewReaderSize(conn, maxPath)
	for range maxHeaders {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		if strings.TrimSpace(string(line)) == "" {
			break
		}
	}
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
}

func (c *call) listen(word string) (*listener, int, error) {
	port, err := strconv.Atoi(word)
	if err != nil || port < 1 || port > 65535 {
		return nil, 0, syscall.EINVAL
	}
	l, err := c.p.m.listen(port)
	return l, port, err
}

// runNc is nc -l -p PORT: it joins one connection to its own streams.
func runNc(c *call) int {
	opts, rest, err := c.options("lp:")
	if err != nil || !has(opts, "l") {
		return c.complain("only nc -l [-p] port is played here: there is no network")
	}
	word := opts['p']
	if word == "" && len(rest) > 0 {
		word = rest[0]
	}
	l, port, err := c.listen(word)
	if err != nil {
		return c.fault(word, err)
	}
	defer c.p.m.unlisten(port, l)
	conn, err := l.accept(c.p)
	if err != nil {
		return 1
	}
	code := 0
	serving(c.p, conn, func() {
		var wg sync.WaitGroup
		wg.Go(func() { _ = pour(conn, c.in) })
		if err := pour(c.out, conn); err != nil {
			code = 1
		}
		c.p.exit(code) // lets go of the input
		wg.Wait()
	})
	return code
}
