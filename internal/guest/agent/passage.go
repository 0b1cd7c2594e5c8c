//go:build linux

package agent

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// passage is the stream of bytes that a door brought, until the door or the host
// ends it.
type passage struct {
	in, out *os.File
	door    *os.File // closed when the passage is
	pid     int      // of the door
}

func (p *passage) Read(b []byte) (int, error)  { return p.in.Read(b) }
func (p *passage) Write(b []byte) (int, error) { return p.out.Write(b) }
func (p *passage) Close() error                { return errors.Join(p.in.Close(), p.out.Close(), p.door.Close()) }

// outlive waits for the end of the door.
func (p *passage) outlive() {
	var b [1]byte
	for {
		if _, err := p.door.Read(b[:]); err != nil {
			return
		}
	}
}

// passThrough takes the streams of a door, which it takes over, and says so on
// both sides of it. A door is root's, or has the parent named.
func passThrough(conn, parent int) (*passage, error) {
	door := os.NewFile(uintptr(conn), "door")
	who, err := unix.GetsockoptUcred(conn, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err == nil && who.Uid != 0 && (parent == 0 || parentOf(int(who.Pid)) != parent) {
		err = errStranger
	}
	var fds []int
	if err == nil {
		fds, err = brought(door)
	}
	if err != nil {
		_ = door.Close()
		return nil, err
	}
	p := &passage{in: pollable(fds[0]), out: pollable(fds[1]), door: door, pid: int(who.Pid)}
	_ = p.out.SetWriteDeadline(time.Now().Add(doorPatience))
	_, err = io.WriteString(p.out, protocol.Magic)
	_ = p.out.SetWriteDeadline(time.Time{})
	if err == nil {
		_, err = door.Write([]byte{taken})
	}
	if err != nil {
		_ = p.Close()
		return nil, err
	}
	return p, nil
}

// pollable is a file that can be closed while somebody waits for it.
func pollable(fd int) *os.File {
	_ = unix.SetNonblock(fd, true)
	return os.NewFile(uintptr(fd), "passage")
}

// brought returns the input and the output that a door has.
func brought(door *os.File) ([]int, error) {
	rc, err := door.SyscallConn()
	if err != nil {
		return nil, err
	}
	_ = door.SetReadDeadline(time.Now().Add(doorPatience))
	defer func() { _ = door.SetReadDeadline(time.Time{}) }()
	const streams = 2
	var b [1]byte
	oob := make([]byte, unix.CmsgSpace(streams*4))
	n, oobn, flags := 0, 0, 0
	var got error
	err = rc.Read(func(fd uintptr) bool {
		n, oobn, flags, _, got = unix.Recvmsg(int(fd), b[:], oob, unix.MSG_CMSG_CLOEXEC)
		return !errors.Is(got, unix.EAGAIN) && !errors.Is(got, unix.EINTR)
	})
	if err = errors.Join(err, got); err != nil {
		return nil, err
	}
	fds := rights(oob[:oobn])
	if n != 1 || flags&unix.MSG_CTRUNC != 0 || len(fds) != streams {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return nil, protocol.ErrMalformed
	}
	return fds, nil
}

// rights returns the descriptors in what came beside a message.
func rights(oob []byte) (fds []int) {
	list, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for i := range list {
		if some, err := unix.ParseUnixRights(&list[i]); err == nil {
			fds = append(fds, some...)
		}
	}
	return fds
}

// parentOf returns the parent of a process; 0 if it is gone.
func parentOf(pid int) int {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The name of the program stands in parentheses and may hold anything.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 { //nolint:mnd // a state and the parent
		return 0
	}
	parent, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0
	}
	return parent
}
