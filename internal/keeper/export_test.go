//go:build linux

package keeper

import (
	"context"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// Serve is a keeper in this process, until stop.
func Serve(dir string) (stop func(), done <-chan struct{}, err error) {
	s, err := newServer(dir)
	if err != nil {
		return nil, nil, err
	}
	ended := make(chan struct{})
	go func() {
		s.serve(nil)
		close(ended)
	}()
	return func() {
		s.end()
		<-ended
	}, ended, nil
}

// Hurry shortens waits, until undo.
func Hurry(idle, yield, lock, stall time.Duration) (undo func()) {
	spans := []*span{idleTime, yieldTime, lockTime, stallTime}
	before := make([]time.Duration, len(spans))
	for i, d := range []time.Duration{idle, yield, lock, stall} {
		before[i] = spans[i].set(d)
	}
	return func() {
		for i, d := range before {
			spans[i].set(d)
		}
	}
}

// HurryLooks makes keepers look after their socket more often, until undo.
func HurryLooks(d time.Duration) (undo func()) {
	before := lookTime.set(d)
	return func() { lookTime.set(before) }
}

// HurryAnswers shortens the patience with a keeper, until undo.
func HurryAnswers(d time.Duration) (undo func()) {
	before := answerTime
	answerTime = d
	return func() { answerTime = before }
}

// Greet is a client of whoever is at the other end of a socket.
func Greet(ctx context.Context, fd int) (*Client, error) {
	conn, err := connOf(fd)
	if err != nil {
		return nil, err
	}
	return greet(ctx, conn)
}

// Raw is a connection to a keeper that says what it likes.
func Raw(dir string) (*net.UnixConn, error) {
	place, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = place.Close() }()
	return net.DialUnix("unixpacket", nil, address(place))
}

// Hello is what a server says first, in a protocol.
func Hello(version uint64) []byte { return (&request{kind: kindHello, protocol: version}).encode() }

// Ask is a request of any kind.
func Ask(k byte, sandbox, program string, names ...string) []byte {
	return (&request{kind: kind(k), sandbox: sandbox, program: program, names: names}).encode()
}

// Say is an answer with a code.
func Say(c byte, protocol uint64, names ...string) []byte {
	return (&answer{code: code(c), protocol: protocol, names: names}).encode()
}

// Codes of answers, and kinds of requests.
const (
	CodeWrong   = byte(codeWrong)
	CodeVersion = byte(codeVersion)
	KindPut     = byte(kindPut)
	KindKeep    = byte(kindKeep)
	KindHello   = byte(kindHello)
	KindDrop    = byte(kindDrop)
	MaxSandbox  = maxSandboxes
	MaxPrograms = maxPrograms
	MaxFollow   = maxFollowers
	KeptBytes   = int64(keptBytes)
)

// DecodeRequest and DecodeAnswer must not panic, whatever they get.
func DecodeRequest(b []byte) error { _, err := decodeRequest(b); return err }
func DecodeAnswer(b []byte) error  { _, err := decodeAnswer(b); return err }

// Rights is what goes with a packet.
func Rights(files ...int) []byte { return unix.UnixRights(files...) }

// CodeOf is the code of an answer.
func CodeOf(b []byte) byte {
	a, err := decodeAnswer(b)
	if err != nil {
		return 255
	}
	return byte(a.code)
}
