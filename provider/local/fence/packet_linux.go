package fence

import (
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// The kinds of requests.
const (
	kindBuild byte = 1 + iota
	kindResize
	kindJob
	kindWays
	kindNest
)

// Bounds of a packet: a plan is the largest.
const (
	maxPacket = 160 << 10
	maxFiles  = max(16+2*MaxVolumes, MostPorts+2)
)

// request is what the host wants.
type request struct {
	id     uint64
	kind   byte
	order  Order  // of a build
	group  bool   // the descriptor after the link is a group
	places Places // of a resize
	job    Job
	ways   Ways // of ways
	nest   Nest
}

func (r *request) encode() []byte {
	var e protocol.Encoder
	e.Uint(r.id)
	e.Uint(uint64(r.kind))
	r.order.encode(&e)
	e.Bool(r.group)
	r.places.encode(&e)
	r.job.encode(&e)
	r.ways.encode(&e)
	if r.kind == kindNest { // older spawners know none
		r.nest.encode(&e)
	}
	return e.Bytes()
}

func decodeRequest(b []byte) (r request, err error) {
	d := protocol.NewDecoder(b)
	r.id, r.kind = d.Uint(), d.Byte(kindNest)
	r.order.decode(d)
	r.group = d.Bool()
	r.places.decode(d)
	r.job.decode(d)
	r.ways.decode(d)
	if r.kind == kindNest {
		r.nest.decode(d)
	}
	return r, d.End()
}

// answer is what became of it. The descriptors that come with it are the process
// and the others of a sandbox, or what a job made, or the sockets of ways.
type answer struct {
	id    uint64
	pid   int    // of a sandbox, or how many files a job counted
	bytes int64  // of a job
	fault string // "" when it was done
	errno syscall.Errno
}

func (a *answer) encode() []byte {
	var e protocol.Encoder
	e.Uint(a.id)
	e.Int(int64(a.pid))
	e.Int(a.bytes)
	e.Text(a.fault)
	e.Uint(uint64(a.errno))
	return e.Bytes()
}

func decodeAnswer(b []byte) (a answer, err error) {
	d := protocol.NewDecoder(b)
	a.id, a.pid, a.bytes, a.fault, a.errno = d.Uint(), int(d.Int()), d.Int(), d.Text(maxText), syscall.Errno(d.UpTo(4096))
	return a, d.End()
}

// Fault is what a spawner says about an order that it could not carry out.
type Fault struct {
	Step  string
	Errno syscall.Errno
}

// Error is the step that was refused.
func (f *Fault) Error() string { return f.Step }

// Unwrap returns the kernel's error, if it was one.
func (f *Fault) Unwrap() error {
	if f.Errno == 0 {
		return nil
	}
	return f.Errno
}

// send sends a packet with descriptors, which stay the caller's.
func send(fd int, b []byte, files ...int) error {
	for {
		err := unix.Sendmsg(fd, b, unix.UnixRights(files...), nil, unix.MSG_NOSIGNAL)
		if err != unix.EINTR {
			return os.NewSyscallError("sendmsg", err)
		}
	}
}

// receive waits for a packet. The descriptors are the caller's to close. buf is
// only read until the next call.
func receive(fd int, buf []byte) ([]byte, []int, error) {
	oob := make([]byte, unix.CmsgSpace(maxFiles*4))
	reset := false
	for {
		n, oobn, flags, _, err := unix.Recvmsg(fd, buf, oob, unix.MSG_CMSG_CLOEXEC)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.ECONNRESET && !reset:
			// The peer closed the socket with unread packets. The kernel returns the
			// error once, before the packets that the peer sent.
			reset = true
			continue
		case err != nil:
			return nil, nil, os.NewSyscallError("recvmsg", err)
		case n == 0:
			return nil, nil, io.EOF
		}
		var files []int
		if list, err := unix.ParseSocketControlMessage(oob[:oobn]); err == nil {
			for i := range list {
				if fds, err := unix.ParseUnixRights(&list[i]); err == nil {
					files = append(files, fds...)
				}
			}
		}
		if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
			closeAll(files)
			return nil, nil, protocol.ErrMalformed
		}
		return buf[:n], files, nil
	}
}

func closeAll(files []int) {
	for _, fd := range files {
		_ = unix.Close(fd)
	}
}
