package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/cove-sandbox/cove"
)

// Bounds of what is asked.
const (
	maxQuery      = 1232 // what fits into any packet
	dnsPatience   = 5 * time.Second
	dnsMost       = 16  // connections for DNS at once
	dnsPerLink    = 100 // questions in one
	answerSeconds = 60
)

// servePackets answers what comes over UDP.
func (g *Gateway) servePackets(conn net.PacketConn) {
	buf := make([]byte, maxQuery+1)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			if g.stopped(err) {
				return
			}
			continue
		}
		if n > maxQuery {
			continue
		}
		if out := g.answer(buf[:n]); out != nil {
			_, _ = conn.WriteTo(out, from) // it asks again
		}
	}
}

// serveStream answers what comes over one TCP connection.
func (g *Gateway) serveStream(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(g.ctx, func() { _ = conn.Close() })
	defer stop()
	var head [2]byte
	for range dnsPerLink {
		_ = conn.SetDeadline(time.Now().Add(dnsPatience)) // then the next read fails
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint16(head[:]))
		if n > maxQuery {
			return
		}
		query := make([]byte, n)
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		out := g.answer(query)
		if out == nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...)); err != nil { //nolint:gosec // an answer is short
			return
		}
	}
}

// answer returns what is to be said to a question, or nil for nothing.
func (g *Gateway) answer(query []byte) []byte {
	p := g.policy.Load()
	if ok, tell := g.queries.take(p.limits.Queries); !ok {
		if tell {
			g.denyName("", "too many questions in a second")
		}
		return nil
	}
	head, q, err := parseQuery(query)
	if err != nil {
		return nil
	}
	reply := dnsmessage.Header{ID: head.ID, Response: true, RecursionDesired: head.RecursionDesired, RecursionAvailable: true}
	if head.OpCode != 0 || q.Class != dnsmessage.ClassINET {
		reply.RCode = dnsmessage.RCodeNotImplemented
		return build(reply, q, nil)
	}
	name, clean := cleanName(q.Name.String())
	if !clean || !p.rules.knows(name) {
		g.denyName(q.Name.String(), "the name is not on the list")
		reply.RCode = dnsmessage.RCodeNameError
		return build(reply, q, nil)
	}
	if q.Type != dnsmessage.TypeA {
		return build(reply, q, nil) // it exists, and has nothing else
	}
	addr, ok := g.names.address(name, p.limits.Names)
	if !ok {
		g.denyName(name, "too many names are in use")
		reply.RCode = dnsmessage.RCodeRefused
		return build(reply, q, nil)
	}
	a := dnsmessage.AResource{A: addr.As4()}
	return build(reply, q, &a)
}

var errQuery = errors.New("not a question")

// parseQuery reads the one question of a message. What comes after it, such as
// EDNS, changes nothing.
func parseQuery(b []byte) (dnsmessage.Header, dnsmessage.Question, error) {
	var parser dnsmessage.Parser
	head, err := parser.Start(b)
	if err != nil {
		return head, dnsmessage.Question{}, err
	}
	if head.Response || binary.BigEndian.Uint16(b[4:6]) != 1 {
		return head, dnsmessage.Question{}, errQuery
	}
	q, err := parser.Question()
	return head, q, err
}

// build returns the message, or nil if it cannot be written.
func build(head dnsmessage.Header, q dnsmessage.Question, a *dnsmessage.AResource) []byte {
	m := dnsmessage.Message{Header: head, Questions: []dnsmessage.Question{q}}
	if a != nil {
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: answerSeconds}, Body: a,
		}}
	}
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return out
}

// denyName writes down a name that was not answered.
func (g *Gateway) denyName(name, why string) {
	g.journal.add(cove.Connection{At: time.Now(), Protocol: "dns", Host: printable(name), Why: why})
}

// printable is what of a name can be shown: a sandbox chose its bytes.
func printable(name string) string {
	name = strings.TrimSuffix(name, ".")
	if len(name) > 253 {
		name = name[:253]
	}
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '?'
		}
		return r
	}, name)
}
