//go:build linux

package protocol

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// frameKind says what a frame is.
type frameKind byte

const (
	frameMessage frameKind = iota + 1
	frameData
	frameEnd    // the sender has no more data on the stream
	frameCredit // the sender can take so many more bytes
	frameReset  // the sender takes no more data on the stream
)

// Bounds on frames and streams.
const (
	maxFrame   = 32 << 10 // of data
	maxMessage = MaxBody + 4<<10
	window     = 256 << 10 // of data that was sent and not yet taken
	maxLanes   = 4096      // streams at once
)

var errLanes = errors.New("too many streams at once")

// framed carries messages and streams in frames over one stream of bytes. It
// gives whoever receives a message a pipe for every stream, and copies.
type framed struct {
	rw   io.ReadWriteCloser
	r    *bufio.Reader
	host bool
	most int // of a message that is received

	writing sync.Mutex // one frame at a time

	mu   sync.Mutex
	next uint64
	outs map[uint64]*outlet
	ins  map[uint64]*inlet
	dead bool
}

// NewHostFramed returns the host's end of a link over any reliable stream of
// bytes, which it takes over.
func NewHostFramed(rw io.ReadWriteCloser) Link { return newFramed(rw, true) }

// NewAgentFramed returns the agent's end.
func NewAgentFramed(rw io.ReadWriteCloser) Link { return newFramed(rw, false) }

func newFramed(rw io.ReadWriteCloser, host bool) *framed {
	l := &framed{rw: rw, r: bufio.NewReaderSize(rw, maxFrame), host: host, most: maxMessage, outs: map[uint64]*outlet{}, ins: map[uint64]*inlet{}}
	if host {
		// The agent may still send on streams of an earlier host: they must not
		// look like ours.
		l.next, l.most = 1+uint64(rand.Uint32())<<1, MaxReply //nolint:gosec // no secret
	}
	return l
}

func (l *framed) Relayed() bool { return true }

func (l *framed) Leave() error { return l.Close() }

func (l *framed) Renew() {
	l.mu.Lock()
	outs, ins := maps.Clone(l.outs), maps.Clone(l.ins)
	l.mu.Unlock()
	stop(outs, ins)
}

func (l *framed) Close() error {
	l.mu.Lock()
	if l.dead {
		l.mu.Unlock()
		return nil
	}
	l.dead = true
	outs, ins := l.outs, l.ins
	l.outs, l.ins = nil, nil
	l.mu.Unlock()
	stop(outs, ins)
	return l.rw.Close()
}

func stop(outs map[uint64]*outlet, ins map[uint64]*inlet) {
	for _, o := range outs {
		o.stop()
	}
	for _, i := range ins {
		i.stop()
	}
}

// frame writes one frame; head is what stands before the payload.
func (l *framed) frame(kind frameKind, lane uint64, payload []byte) error {
	b := make([]byte, 0, 24+len(payload))
	b = append(b, byte(kind))
	b = binary.AppendUvarint(b, lane)
	b = binary.AppendUvarint(b, uint64(len(payload)))
	b = append(b, payload...)
	l.writing.Lock()
	defer l.writing.Unlock()
	_, err := l.rw.Write(b)
	return err
}

// push writes a message, for which a host has no more than its patience.
func (l *framed) push(message []byte) error {
	if !l.host {
		return l.frame(frameMessage, 0, message)
	}
	late := time.AfterFunc(patience, func() { _ = l.Close() })
	err := l.frame(frameMessage, 0, message)
	if !late.Stop() {
		return ErrStalled
	}
	return err
}

func (l *framed) Send(m *Message) error {
	if len(m.Body) > MaxBody {
		closeStreams(m.Streams)
		return unix.EMSGSIZE
	}
	h := header{kind: m.Kind, id: m.ID, lanes: []uint64{}}
	var start []func()
	for _, s := range m.Streams {
		lane, run, err := l.attach(s)
		if err != nil {
			closeStreams(m.Streams)
			return err
		}
		h.flows, h.lanes, start = append(h.flows, s.Flow), append(h.lanes, lane), append(start, run)
	}
	var e Encoder
	h.encode(&e)
	err := l.push(append(e.b, m.Body...))
	// Started after the message, so that no data comes before its stream.
	for _, run := range start {
		run()
	}
	if err != nil {
		_ = l.Close()
	}
	return err
}

// attach gives a stream of ours a number. run starts the copying.
func (l *framed) attach(s *Stream) (lane uint64, run func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return 0, nil, os.ErrClosed
	}
	if len(l.outs)+len(l.ins) >= maxLanes {
		return 0, nil, errLanes
	}
	l.next += 2
	lane = l.next
	out, in := s.Flow != Writable, s.Flow != Readable
	_, run = l.connect(lane, s.File("stream"), out, in)
	return lane, run, nil
}

// connect makes the two directions of a stream. Called with mu held.
func (l *framed) connect(lane uint64, f *os.File, out, in bool) (o *outlet, run func()) {
	end := &ending{file: f}
	var i *inlet
	if out {
		end.users++
		o = newOutlet(l, lane, end)
		l.outs[lane] = o
	}
	if in {
		end.users++
		i = newInlet(l, lane, end, out)
		l.ins[lane] = i
	}
	return o, func() {
		if o != nil {
			go o.run()
		}
		if i != nil {
			go i.run()
		}
	}
}

func (l *framed) Receive() (*Message, error) {
	for {
		m, err := l.step()
		if err != nil {
			_ = l.Close()
			return nil, err
		}
		if m != nil {
			return m, nil
		}
	}
}

// step reads one frame, and returns the message if it is one.
func (l *framed) step() (*Message, error) {
	kind, err := l.r.ReadByte()
	if err != nil {
		return nil, err
	}
	lane, err := binary.ReadUvarint(l.r)
	if err != nil {
		return nil, unexpected(err)
	}
	size, err := binary.ReadUvarint(l.r)
	if err != nil {
		return nil, unexpected(err)
	}
	most := maxFrame
	if frameKind(kind) == frameMessage {
		most = l.most
	}
	if size > uint64(most) {
		return nil, ErrMalformed
	}
	payload := make([]byte, size)
	if _, err := io.ReadFull(l.r, payload); err != nil {
		return nil, unexpected(err)
	}
	if frameKind(kind) == frameMessage {
		return l.message(payload)
	}
	return nil, l.dispatch(frameKind(kind), lane, payload)
}

// dispatch hands a frame to its stream. One that is unknown has just ended.
func (l *framed) dispatch(kind frameKind, lane uint64, payload []byte) error {
	l.mu.Lock()
	o, i := l.outs[lane], l.ins[lane]
	l.mu.Unlock()
	switch kind {
	case frameData:
		if len(payload) == 0 {
			return ErrMalformed
		}
		if i != nil {
			return i.push(payload)
		}
	case frameEnd:
		if i != nil {
			return i.push(nil)
		}
	case frameCredit:
		d := NewDecoder(payload)
		n := d.UpTo(window)
		if err := d.End(); err != nil {
			return err
		}
		if o != nil {
			return o.credit(int(n)) //nolint:gosec // bounded
		}
	case frameReset:
		if o != nil {
			o.stop()
		}
	case frameMessage:
	default:
		return ErrMalformed
	}
	return nil
}

func (l *framed) message(b []byte) (*Message, error) {
	h, body, err := decodeHeader(b, true)
	if err != nil {
		return nil, err
	}
	m := &Message{Kind: h.kind, ID: h.id, Body: body}
	for n, f := range h.flows {
		s, err := l.accept(h.lanes[n], f)
		if err != nil {
			closeStreams(m.Streams)
			return nil, err
		}
		m.Streams = append(m.Streams, s)
	}
	return m, nil
}

// accept makes the pipe for a stream of the other side.
func (l *framed) accept(lane uint64, flow Flow) (*Stream, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, taken := l.outs[lane]
	if l.ins[lane] != nil || taken || lane%2 == l.next%2 {
		return nil, ErrMalformed
	}
	if l.dead {
		return nil, os.ErrClosed
	}
	if len(l.outs)+len(l.ins) >= maxLanes {
		return nil, errLanes
	}
	var mine *os.File
	var s *Stream
	var err error
	if flow == Duplex {
		mine, s, err = pair()
	} else {
		mine, s, err = Pipe(flow)
	}
	if err != nil {
		return nil, err
	}
	o, run := l.connect(lane, mine, flow != Readable, flow != Writable)
	if o != nil {
		s.finish = o.finish
	}
	run()
	return s, nil
}

// pair is a pipe in both directions.
func pair() (*os.File, *Stream, error) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	_ = unix.SetNonblock(p[0], true)
	return os.NewFile(uintptr(p[0]), "pair"), NewStream(p[1], Duplex), nil
}

func (l *framed) drop(lane uint64, out bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if out {
		delete(l.outs, lane)
	} else {
		delete(l.ins, lane)
	}
}
