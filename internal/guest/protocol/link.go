//go:build linux

package protocol

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrStalled says that the other side takes no more messages.
var ErrStalled = errors.New("it takes no more messages")

// patience is how long an agent may leave its messages lying. After that it is
// taken for dead.
var patience = 30 * time.Second

// Link carries messages between a host and an agent. Send may be called by
// many goroutines, Receive by one. After an error of either, the link is dead.
type Link interface {
	// Send takes over the streams of the message, whatever it returns. A host
	// whose message is not taken for half a minute gets ErrStalled.
	Send(m *Message) error
	// Receive hands over the streams of the message. It returns an error when
	// the other side is gone or is not to be trusted any more.
	Receive() (*Message, error)
	// Relayed reports whether streams are copied on their way. Then the agent
	// ends those of a program when it exits; otherwise they are the very pipes,
	// and the host must see for itself what is in them.
	Relayed() bool
	// Renew forgets the streams of an earlier host. It is for agents.
	Renew()
	// Close is idempotent, and ends Receive.
	Close() error
	// Leave is Close for a host whose end of the link somebody else holds, too: it
	// stays open there, and the agent lives on.
	Leave() error
}

// Stream is a descriptor that is attached to a message. Who holds it must
// close it, or turn it into a file.
type Stream struct {
	fd     int
	Flow   Flow
	finish func()
	refuse func()
	let    func()
	over   <-chan struct{}
	after  func()
}

// NewStream attaches a descriptor, which it takes over.
func NewStream(fd int, flow Flow) *Stream { return &Stream{fd: fd, Flow: flow} }

// FD is the descriptor; it still belongs to the stream.
func (s *Stream) FD() int { return s.fd }

// Finish ends a relayed stream that programs of this side write to: what is in it
// now still arrives, what is written later does not. Otherwise it does nothing.
func (s *Stream) Finish() {
	if s.finish != nil {
		s.finish()
	}
}

// Refuse tells the other side of a relayed stream that its connection is cut off,
// and not at its end. It is to be closed after that. Otherwise it does nothing.
func (s *Stream) Refuse() {
	if s.refuse != nil {
		s.refuse()
	}
}

// Release lets the input of a program end with the link; see [ending]. Otherwise it
// does nothing.
func (s *Stream) Release() {
	if s.let != nil {
		s.let()
	}
}

// Over is closed when nobody will read what is written to a relayed stream, and
// nil for others.
func (s *Stream) Over() <-chan struct{} { return s.over }

// After has a function called when the stream has ended in all directions, or was
// closed before it was sent. It is for one that is to be relayed.
func (s *Stream) After(do func()) { s.after = do }

// Take returns the descriptor, which is the caller's from now on.
func (s *Stream) Take() int {
	fd := s.fd
	s.fd = -1
	return fd
}

// Close closes the descriptor.
func (s *Stream) Close() {
	if s.fd >= 0 {
		_ = unix.Close(s.fd)
		s.fd = -1
		if s.after != nil {
			s.after()
		}
	}
}

// File turns the stream into a file that waits without holding a thread.
func (s *Stream) File(name string) *os.File {
	fd := s.Take()
	_ = unix.SetNonblock(fd, true)
	return os.NewFile(uintptr(fd), name)
}

func closeStreams(list []*Stream) {
	for _, s := range list {
		s.Close()
	}
}

// Pipe returns the two ends of a pipe. Mine waits without holding a thread;
// theirs is for a program: a descriptor that blocks.
func Pipe(theirs Flow) (mine *os.File, stream *Stream, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	own, other := p[1], p[0]
	if theirs == Writable {
		own, other = p[0], p[1]
	}
	if _, err := unix.FcntlInt(uintptr(other), unix.F_SETFL, 0); err != nil {
		_, _ = unix.Close(own), unix.Close(other)
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(own), "pipe"), NewStream(other, theirs), nil
}
