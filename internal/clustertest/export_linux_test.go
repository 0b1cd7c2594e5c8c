package clustertest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"
)

// Understand reads a success.
var Understand = understand

// Lacks ends a test that a cluster cannot be started for.
var Lacks = lacks

// CloseAll ends the sessions of a cluster that answers by a transport.
func CloseAll(t *testing.T, by http.RoundTripper) error {
	t.Helper()
	r := &Rig{ask: &http.Client{Transport: by}, nodes: []*node{{member: &member{address: "127.0.0.1"}, port: clientPort, admin: "key"}}}
	return r.closeAll(t.Context())
}

// Clean returns the sandboxes that are left of a node, and removes their groups.
func Clean(t *testing.T, home string) (left []string, err error) {
	t.Helper()
	n := &node{home: home}
	return n.remains(), n.removeGroups(t.Context())
}

// Net is a network for tests of the network itself.
type Net struct{ n *network }

// NewNet connects members of these names, or skips the test where that cannot be done.
func NewNet(t *testing.T, names ...string) Net {
	t.Helper()
	if syscall.Getuid() != 0 {
		lacks(t, "only root can make networks")
	}
	n, err := newNetwork(t.Context(), names...)
	if err != nil {
		lacks(t, "no networks can be made: %v", err)
	}
	t.Cleanup(func() {
		if err := n.close(); err != nil {
			t.Error(err)
		}
	})
	return Net{n}
}

// Cut and Mend take and give the way between two members.
func (x Net) Cut(t *testing.T, a, b int) { t.Helper(); x.change(t, a, b, x.n.cut) }

// Mend is the other of the two.
func (x Net) Mend(t *testing.T, a, b int) { t.Helper(); x.change(t, a, b, x.n.mend) }

func (x Net) change(t *testing.T, a, b int, f func(context.Context, *member, *member) error) {
	t.Helper()
	if err := f(t.Context(), x.n.members[a], x.n.members[b]); err != nil {
		t.Fatal(err)
	}
}

// Listen listens at a member, until the test ends, and sends back what it gets.
func (x Net) Listen(t *testing.T, at int) {
	t.Helper()
	m := x.n.members[at]
	var l net.Listener
	var err error
	m.space.run(func() { l, err = net.Listen("tcp4", m.address+":99") })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go echo(conn)
		}
	}()
}

func echo(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	var b [1]byte
	for {
		if _, err := conn.Read(b[:]); err != nil {
			return
		}
		if _, err := conn.Write(b[:]); err != nil {
			return
		}
	}
}

// Dial connects from a member, or from the hub where that is -1. A silence is
// [context.DeadlineExceeded].
func (x Net) Dial(t *testing.T, from, to int, patience time.Duration) (net.Conn, error) {
	t.Helper()
	s := x.n.hub
	if from >= 0 {
		s = x.n.members[from].space
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var conn net.Conn
	var err error
	s.run(func() { conn, err = (&net.Dialer{}).DialContext(ctx, "tcp4", x.n.members[to].address+":99") })
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		err = context.DeadlineExceeded
	}
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}
