//go:build linux

package agent

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// held has the streams of a program that is kept, where nobody outside can. All
// methods do nothing without one.
type held struct {
	note []byte
	tape *tape

	mu     sync.Mutex
	in     *os.File // nil when it is closed
	marked bool     // the note is that of a mark
	outs   map[*os.File]bool
}

// newHeld begins to read the files, of which any may be nil; the terminal is both.
func newHeld(note []byte, t *tape, in, out, errs *os.File) *held {
	h := &held{note: note, tape: t, in: in, outs: map[*os.File]bool{}}
	kinds := map[*os.File]protocol.RecordKind{}
	if errs != nil {
		kinds[errs] = protocol.RecordErrs
	}
	if out != nil {
		kinds[out] = protocol.RecordData
	}
	for f := range kinds {
		h.outs[f] = true
	}
	if len(kinds) == 0 {
		t.close()
	}
	for f, kind := range kinds {
		go h.pump(f, kind)
	}
	return h
}

// pump reads until the stream ends, or the program has and its pipe is empty.
func (h *held) pump(f *os.File, kind protocol.RecordKind) {
	defer h.closeOut(f)
	take := func(b []byte) error {
		h.tape.write(kind, b)
		select {
		case <-h.tape.gone:
			return os.ErrClosed
		default:
			return nil
		}
	}
	protocol.Pump(f, blockBytes/2, take)
}

// closeOut closes a stream, and the tape with the last.
func (h *held) closeOut(f *os.File) {
	_ = f.Close()
	h.mu.Lock()
	delete(h.outs, f)
	last := len(h.outs) == 0
	h.mu.Unlock()
	if last {
		h.tape.close()
	}
}

// shut closes the input.
func (h *held) shut() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.in != nil {
		_ = h.in.Close()
		h.in = nil
	}
}

// finish is called when the program has ended: what is in its pipes is all that is
// wanted of them.
func (h *held) finish() {
	if h == nil {
		return
	}
	h.shut()
	h.mu.Lock()
	defer h.mu.Unlock()
	for f := range h.outs {
		_ = f.SetReadDeadline(time.Unix(1, 0))
	}
}

// mark says what of the output is not wanted again.
func (h *held) mark(m protocol.Mark) {
	if h != nil {
		h.mu.Lock()
		h.note, h.marked = m.Note, true
		h.mu.Unlock()
		h.tape.mark(m.Out, m.Err)
	}
}

// isMarked reports whether a later server is to go on with it by its note.
func (h *held) isMarked() bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.marked
}

// restart counts the output from here on.
func (h *held) restart() {
	if h != nil {
		h.tape.restart()
	}
}

// forget frees all. It is called once.
func (h *held) forget() {
	if h != nil {
		h.tape.forget()
		h.finish()
	}
}

// input returns a stream for the input, none if it is closed.
func (h *held) input() ([]*protocol.Stream, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.in == nil {
		return nil, nil
	}
	rc, err := h.in.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	var dup error
	if err := rc.Control(func(of uintptr) { fd, dup = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, err
	}
	if dup != nil {
		return nil, dup
	}
	return []*protocol.Stream{protocol.NewStream(fd, protocol.Writable)}, nil
}
