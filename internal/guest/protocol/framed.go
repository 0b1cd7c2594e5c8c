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
	maxLanes   = 4096      // directions of streams at once; one side may know of an end before the other
	maxTurning = 64
)

// ErrNoRoom is what a message gets while there are too many streams, or descriptors of
// this process. It was not sent, and the link is as good as before.
var ErrNoRoom = errors.New("too many streams at once")

// withoutRoom is a reply whose streams nobody has room for.
func withoutRoom(id uint64) *Message {
	return &Message{Kind: KindReply, ID: id, Body: Reply{Reason: ReasonBusy}.Encode()}
}

// framed carries messages and streams in frames over one stream of bytes. It
// gives whoever receives a message a pipe for every stream, and copies.
type framed struct {
	still

	rw   io.ReadWriteCloser
	r    *bufio.Reader
	host bool
	most int // of a message that is received

	writing sync.Mutex    // one frame at a time
	turning chan struct{} // holds one value for each stream that is being turned away

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
	l := &framed{rw: rw, r: bufio.NewReaderSize(rw, maxFrame), host: host, most: maxMessage, turning: make(chan struct{}, maxTurning), outs: map[uint64]*outlet{}, ins: map[uint64]*inlet{}}
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
	late := l.alarm(func() { _ = l.Close() })
	err := l.frame(frameMessage, 0, message)
	if late.stop() {
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
	start, err := l.attach(m.Streams, &h)
	if err != nil {
		closeStreams(m.Streams)
		return err
	}
	var e Encoder
	h.encode(&e)
	err = l.push(append(e.b, m.Body...))
	// Started after the message, so that no data comes before its stream.
	for _, run := range start {
		run()
	}
	if err != nil {
		_ = l.Close()
	}
	return err
}

// attach gives streams of ours their numbers, all of them or none. What it returns
// starts the copying.
func (l *framed) attach(streams []*Stream, h *header) (start []func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return nil, os.ErrClosed
	}
	lanes := len(l.outs) + len(l.ins)
	for _, s := range streams {
		if lanes++; s.Flow == Duplex {
			lanes++
		}
	}
	if len(streams) > 0 && lanes > maxLanes {
		return nil, ErrNoRoom
	}
	for _, s := range streams {
		l.next += 2
		o, run := l.connect(l.next, &ending{file: s.File("stream"), after: s.after}, s.Flow != Writable, s.Flow != Readable)
		if o != nil {
			s.finish = o.finish
		}
		h.flows, h.lanes, start = append(h.flows, s.Flow), append(h.lanes, l.next), append(start, run)
	}
	return start, nil
}

// connect makes the two directions of a stream. Called with mu held.
func (l *framed) connect(lane uint64, end *ending, out, in bool) (o *outlet, run func()) {
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
			if len(payload) > 0 && payload[0] == cutOff {
				o.end.cutOff()
			}
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
		input := !l.host && h.kind == KindStart && f == Readable
		s, err := l.accept(h.lanes[n], f, input)
		if err != nil {
			closeStreams(m.Streams)
			if l.host && scarce(err) {
				return l.turnAway(m, h.lanes[n:])
			}
			return nil, err
		}
		m.Streams = append(m.Streams, s)
	}
	return m, nil
}

// scarce reports whether this process has no descriptor left, which is not the doing
// of who is at the other side, and no reason to end his link.
func scarce(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.ENOBUFS)
}

// turnAway takes a message without its streams: a reply becomes one that there is no
// room, and anything else has not come. It does not wait, unless the other side reads
// nothing; that is the end of the link.
func (l *framed) turnAway(m *Message, lanes []uint64) (*Message, error) {
	for _, lane := range lanes {
		select {
		case l.turning <- struct{}{}:
		default:
			return nil, ErrStalled
		}
		go func() {
			defer func() { <-l.turning }()
			_ = l.frame(frameReset, lane, []byte{cutOff}) // else the link is dead
			_ = l.frame(frameEnd, lane, nil)
		}()
	}
	if m.Kind != KindReply {
		return nil, nil
	}
	return withoutRoom(m.ID), nil
}

// accept makes the pipe for a stream of the other side; input says that it is that of a
// program.
func (l *framed) accept(lane uint64, flow Flow, input bool) (*Stream, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, taken := l.outs[lane]
	if l.ins[lane] != nil || taken || lane%2 == l.next%2 {
		return nil, ErrMalformed
	}
	if l.dead {
		return nil, os.ErrClosed
	}
	if len(l.outs)+len(l.ins) >= 2*maxLanes {
		return nil, ErrNoRoom
	}
	var mine *os.File
	var s *Stream
	var err error
	if flow == Duplex {
		mine, s, err = Pair()
	} else {
		mine, s, err = Pipe(flow)
	}
	if err != nil {
		return nil, err
	}
	end := &ending{file: mine, guarded: input}
	s.let = end.release
	o, run := l.connect(lane, end, flow != Readable, flow != Writable)
	if o != nil {
		s.finish, s.over = o.finish, o.over
		s.refuse = func() { _ = l.frame(frameReset, lane, []byte{cutOff}) } // else the link is dead
	}
	run()
	return s, nil
}

// Pair is a pipe in both directions. Mine waits without holding a thread.
func Pair() (*os.File, *Stream, error) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	_ = unix.SetNonblock(p[0], true)
	return os.NewFile(uintptr(p[0]), "pair"), NewStream(p[1], Duplex), nil
}

// desert ends what the other side sends on a stream that nobody reads any more, which
// nobody would notice before something comes.
func (l *framed) desert(lane uint64) {
	l.mu.Lock()
	i := l.ins[lane]
	l.mu.Unlock()
	if i != nil && i.duplex {
		i.stop()
		_ = l.frame(frameReset, lane, nil)
	}
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
