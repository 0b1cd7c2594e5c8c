//go:build linux

package protocol

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/longcall"
)

// descriptors carries a message in a packet, and streams as descriptors.
type descriptors struct {
	still

	file *os.File
	rc   syscall.RawConn
	host bool
	buf  []byte
	oob  []byte
	once sync.Once
}

// NewHostDescriptors returns the host's end of a link over a socket of type
// SOCK_SEQPACKET, which it takes over.
func NewHostDescriptors(fd int) (Link, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return newDescriptors(fd, true)
}

// NewAgentDescriptors returns the agent's end. Its Receive holds a thread: that
// one wakes up sooner than one behind a poller.
func NewAgentDescriptors(fd int) (Link, error) {
	if err := unix.SetNonblock(fd, false); err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return newDescriptors(fd, false)
}

func newDescriptors(fd int, host bool) (Link, error) {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_SEQPACKET {
		return nil, errors.New("the link is no socket of type SOCK_SEQPACKET")
	}
	unix.CloseOnExec(fd)
	l := &descriptors{file: os.NewFile(uintptr(fd), "link"), host: host}
	l.rc, err = l.file.SyscallConn()
	size := MaxPacket
	if host {
		size = MaxReply
	}
	l.buf, l.oob = make([]byte, size), make([]byte, unix.CmsgSpace((MaxStreams+1)*4))
	return l, err
}

func (l *descriptors) Relayed() bool { return false }

// Renew does nothing: streams are descriptors, which end with whoever held them.
func (l *descriptors) Renew() {}

func (l *descriptors) Leave() error {
	var err error
	l.once.Do(func() { err = l.file.Close() })
	return err
}

// Dup returns a descriptor of the link, for whoever keeps it open.
func (l *descriptors) Dup() (int, error) {
	fd := -1
	var dup error
	if err := l.rc.Control(func(of uintptr) { fd, dup = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return -1, err
	}
	return fd, os.NewSyscallError("fcntl", dup)
}

// Farewell is the packet that tells an agent that its host is gone.
func Farewell() []byte {
	var e Encoder
	(&header{kind: KindLeave}).encode(&e)
	return e.Bytes()
}

func (l *descriptors) Close() error {
	var err error
	l.once.Do(func() {
		// A thread that blocks in Receive is not woken by closing.
		_ = l.rc.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) })
		err = l.file.Close()
	})
	return err
}

func (l *descriptors) Send(m *Message) error {
	defer closeStreams(m.Streams)
	h := header{kind: m.Kind, id: m.ID, flows: make([]Flow, 0, MaxStreams)}
	fds := make([]int, 0, MaxStreams+1)
	for _, s := range m.Streams {
		h.flows = append(h.flows, s.Flow)
		fds = append(fds, s.fd)
	}
	const headRoom = 32
	body := m.Body
	if len(body) > MaxPacket-headRoom {
		if !l.host || len(body) > MaxBody {
			return unix.EMSGSIZE
		}
		memory, err := inMemory(body)
		if scarce(err) {
			return ErrNoRoom
		}
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(memory) }()
		h.large, body, fds = true, nil, append(fds, memory)
	}
	e := Encoder{b: make([]byte, 0, headRoom+len(body))}
	h.encode(&e)
	packet := append(e.b, body...)
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	return l.push(packet, oob)
}

// push sends a packet. Where it must wait, a clock runs for the host: starting
// one for every packet would cost more than the packet.
func (l *descriptors) push(packet, oob []byte) error {
	var sent error
	var late *alarm
	err := l.rc.Write(func(fd uintptr) bool {
		for {
			sent = unix.Sendmsg(int(fd), packet, oob, nil, unix.MSG_NOSIGNAL)
			if !errors.Is(sent, unix.EINTR) {
				break
			}
		}
		full := errors.Is(sent, unix.EAGAIN)
		if full && l.host && late == nil {
			late = l.alarm(func() { _ = l.Close() })
		}
		return !full
	})
	if late != nil && late.stop() {
		return ErrStalled
	}
	if err != nil {
		return err
	}
	return sent
}

// inMemory puts a body that is too large for a packet into a file.
func inMemory(body []byte) (int, error) {
	fd, err := unix.MemfdCreate("body", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("memfd_create", err)
	}
	for len(body) > 0 {
		n, err := unix.Write(fd, body)
		if err != nil {
			_ = unix.Close(fd)
			return -1, os.NewSyscallError("write", err)
		}
		body = body[n:]
	}
	return fd, nil
}

func (l *descriptors) Receive() (*Message, error) {
	n, oobn, flags, err := l.packet()
	if err != nil {
		return nil, err
	}
	fds, err := received(l.oob[:oobn])
	if err != nil || n == 0 || flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		closeAll(fds)
		if n == 0 && err == nil {
			return nil, io.EOF
		}
		// The kernel leaves out what this process has no descriptor for.
		if h, _, err := decodeHeader(l.buf[:n], false); err == nil && l.host && flags&unix.MSG_TRUNC == 0 && h.kind == KindReply && !h.large && len(fds) < len(h.flows) {
			return withoutRoom(h.id), nil
		}
		return nil, ErrMalformed
	}
	m, err := l.decode(l.buf[:n], fds)
	if err != nil {
		closeAll(fds)
	}
	return m, err
}

func (l *descriptors) packet() (n, oobn, flags int, err error) {
	var got error
	reset := false
	err = l.rc.Read(func(fd uintptr) bool {
		for {
			if l.host {
				n, oobn, flags, _, got = unix.Recvmsg(int(fd), l.buf, l.oob, unix.MSG_CMSG_CLOEXEC)
			} else {
				n, oobn, flags, got = waitForPacket(fd, l.buf, l.oob)
			}
			switch {
			case errors.Is(got, unix.EINTR):
			case errors.Is(got, unix.ECONNRESET) && !reset:
				// The peer closed the socket with unread packets. The kernel returns the
				// error once, before the packets that the peer sent.
				reset = true
			default:
				return !errors.Is(got, unix.EAGAIN)
			}
		}
	})
	if err == nil {
		err = got
	}
	return n, oobn, flags, err
}

// waitForPacket is recvmsg for who has nothing else to do.
func waitForPacket(fd uintptr, buf, oob []byte) (n, oobn, flags int, err error) {
	part := unix.Iovec{Base: &buf[0]}
	part.SetLen(len(buf))
	m := unix.Msghdr{Iov: &part, Control: &oob[0]}
	m.SetIovlen(1)
	m.SetControllen(len(oob))
	r, errno := longcall.Call(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&m)), unix.MSG_CMSG_CLOEXEC, 0) //nolint:gosec // what the call takes
	if errno != 0 {
		return 0, 0, 0, errno
	}
	return int(r), int(m.Controllen), int(m.Flags), nil //nolint:gosec // bounded by the lengths given
}

func (l *descriptors) decode(packet []byte, fds []int) (*Message, error) {
	h, body, err := decodeHeader(packet, false)
	if err != nil {
		return nil, err
	}
	want := len(h.flows)
	if h.large {
		// A host never reads a file that an agent passed: reading it could hang.
		if l.host {
			return nil, ErrMalformed
		}
		want++
	}
	if want != len(fds) {
		return nil, ErrMalformed
	}
	m := &Message{Kind: h.kind, ID: h.id}
	if h.large {
		if m.Body, err = fromMemory(fds[want-1]); err != nil {
			return nil, err
		}
		_ = unix.Close(fds[want-1])
	} else {
		m.Body = append([]byte(nil), body...)
	}
	for i, f := range h.flows {
		m.Streams = append(m.Streams, NewStream(fds[i], f))
	}
	return m, nil
}

func fromMemory(fd int) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Size <= 0 || st.Size > MaxBody {
		return nil, ErrMalformed
	}
	body := make([]byte, st.Size)
	for done := 0; done < len(body); {
		n, err := unix.Pread(fd, body[done:], int64(done))
		if err != nil || n <= 0 {
			return nil, ErrMalformed
		}
		done += n
	}
	return body, nil
}

// received returns the descriptors that came with a packet.
func received(oob []byte) ([]int, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	list, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, ErrMalformed
	}
	var fds []int
	for i := range list {
		some, err := unix.ParseUnixRights(&list[i])
		if err != nil {
			return fds, ErrMalformed
		}
		fds = append(fds, some...)
	}
	return fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
