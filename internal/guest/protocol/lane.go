//go:build linux

package protocol

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// ending closes a file when both directions of it are done.
//
// A program must not take the end of the link for the end of its input: it would believe
// that it has read all of it. So the input of a program is guarded: it stays open after a
// link that broke, until the agent has ended the program and releases it.
type ending struct {
	file *os.File
	mu   sync.Mutex
	// users is how many directions are not done.
	users   int
	guarded bool
	broken  bool        // the link was lost before the other side had sent all
	cut     atomic.Bool // it was refused
	after   func()      // or nil
}

func (e *ending) done() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.users--; e.users > 0 || e.guarded && e.broken {
		return
	}
	_ = e.file.Close()
	if e.after != nil {
		e.after()
	}
}

// breaks notes that the link was lost.
func (e *ending) breaks() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.broken = true
}

// release ends the guard.
func (e *ending) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.guarded = false
	if e.users <= 0 {
		_ = e.file.Close() // again, where nothing broke
	}
}

// cutOff is what a reset frame holds for a connection that was refused.
const cutOff = 1

// cutOff makes the end of a connection one that its other side sees as such.
func (e *ending) cutOff() {
	e.cut.Store(true)
	if rc, err := e.file.SyscallConn(); err == nil {
		_ = rc.Control(func(fd uintptr) {
			_ = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}) // only sockets can
		})
	}
}

// past is a deadline that makes every wait end.
func past() time.Time { return time.Unix(1, 0) }

// outlet copies from a file of this side to the other side, as far as that one
// has room.
type outlet struct {
	l      *framed
	lane   uint64
	end    *ending
	ending atomic.Bool // send what is there and no more
	over   chan struct{}

	mu      sync.Mutex
	changed *sync.Cond
	room    int
	stopped bool
}

func newOutlet(l *framed, lane uint64, end *ending) *outlet {
	o := &outlet{l: l, lane: lane, end: end, room: window, over: make(chan struct{})}
	o.changed = sync.NewCond(&o.mu)
	return o
}

// finish makes it send what is in the file now, and end.
func (o *outlet) finish() {
	o.ending.Store(true)
	_ = o.end.file.SetReadDeadline(past())
}

// stop makes it end at once.
func (o *outlet) stop() {
	o.mu.Lock()
	o.stopped = true
	o.changed.Broadcast()
	o.mu.Unlock()
	_ = o.end.file.SetReadDeadline(past())
}

func (o *outlet) credit(n int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.room += n; o.room > window {
		return ErrMalformed
	}
	o.changed.Broadcast()
	return nil
}

// take waits for room for some of the bytes; 0 means that it was stopped.
func (o *outlet) take(want int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.room == 0 && !o.stopped {
		o.changed.Wait()
	}
	if o.stopped {
		return 0
	}
	n := min(want, o.room)
	o.room -= n
	return n
}

func (o *outlet) halted() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stopped
}

func (o *outlet) run() {
	defer close(o.over)
	defer o.end.done()
	defer o.l.drop(o.lane, true)
	buf := make([]byte, maxFrame)
	for !o.halted() {
		if o.ending.Load() {
			_ = Drain(o.end.file, o.send)
			break
		}
		n, err := o.end.file.Read(buf)
		if err := o.send(buf[:n]); err != nil {
			return
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	if o.halted() {
		return
	}
	_ = o.l.frame(frameEnd, o.lane, nil)
	if o.deserted() {
		o.l.desert(o.lane)
	}
}

// deserted reports whether whoever had the other end of a socket has closed it, and
// not only ended what he writes.
func (o *outlet) deserted() (gone bool) {
	rc, err := o.end.file.SyscallConn()
	if err != nil {
		return false
	}
	_ = rc.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd)}} //nolint:gosec // a descriptor
		if _, err := unix.Poll(p, 0); err == nil {
			gone = p[0].Revents&unix.POLLHUP != 0
		}
	})
	return gone
}

var errStopped = errors.New("the stream was stopped")

// send sends bytes as the other side has room for them.
func (o *outlet) send(b []byte) error {
	for len(b) > 0 {
		n := o.take(len(b))
		if n == 0 {
			return errStopped
		}
		if err := o.l.frame(frameData, o.lane, b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// inlet copies what the other side sends to a file of this side. It holds at
// most a window of bytes.
type inlet struct {
	l      *framed
	lane   uint64
	end    *ending
	duplex bool

	mu      sync.Mutex
	changed *sync.Cond
	queue   [][]byte // a nil is the end
	held    int
	ended   bool
	stopped bool
}

func newInlet(l *framed, lane uint64, end *ending, duplex bool) *inlet {
	i := &inlet{l: l, lane: lane, end: end, duplex: duplex}
	i.changed = sync.NewCond(&i.mu)
	return i
}

func (i *inlet) stop() {
	i.mu.Lock()
	i.stopped = true
	i.changed.Broadcast()
	i.mu.Unlock()
	_ = i.end.file.SetWriteDeadline(past())
}

// push takes a frame; it never waits.
func (i *inlet) push(b []byte) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	last := len(i.queue) - 1
	if i.held += len(b); i.held > window || i.ended {
		return ErrMalformed
	}
	i.ended = b == nil
	// Small frames are joined, so that the queue is bounded as its bytes are.
	if last >= 0 && b != nil && len(i.queue[last])+len(b) <= maxFrame {
		i.queue[last] = append(i.queue[last], b...)
		return nil
	}
	i.queue = append(i.queue, b)
	i.changed.Broadcast()
	return nil
}

// pop waits for a frame.
func (i *inlet) pop() (b []byte, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for len(i.queue) == 0 && !i.stopped {
		i.changed.Wait()
	}
	if i.stopped {
		return nil, false
	}
	b = i.queue[0]
	i.queue = i.queue[1:]
	return b, b != nil
}

func (i *inlet) run() {
	defer i.end.done()
	defer i.l.drop(i.lane, false)
	for {
		b, ok := i.pop()
		if !ok {
			break
		}
		if _, err := i.end.file.Write(b); err != nil {
			i.noteBreak()
			_ = i.l.frame(frameReset, i.lane, nil)
			return
		}
		i.mu.Lock()
		i.held -= len(b)
		i.mu.Unlock()
		var e Encoder
		e.Uint(uint64(len(b)))
		if err := i.l.frame(frameCredit, i.lane, e.b); err != nil {
			i.end.breaks()
			return
		}
	}
	i.noteBreak()
	if i.duplex && !i.end.cut.Load() {
		i.closeWrite()
	}
}

// noteBreak tells the ending whether it was stopped.
func (i *inlet) noteBreak() {
	i.mu.Lock()
	stopped := i.stopped
	i.mu.Unlock()
	if stopped {
		i.end.breaks()
	}
}

// closeWrite tells the reader of a socket that no more comes.
func (i *inlet) closeWrite() {
	if rc, err := i.end.file.SyscallConn(); err == nil {
		_ = rc.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) })
	}
}
