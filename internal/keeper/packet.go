//go:build linux

package keeper

import (
	"errors"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// send sends a packet with descriptors, which stay the caller's.
func send(c *net.UnixConn, b []byte, files []int) error {
	var oob []byte
	if len(files) > 0 {
		oob = unix.UnixRights(files...)
	}
	_, _, err := c.WriteMsgUnix(b, oob, nil)
	return err
}

// receiver reads packets. It is for one goroutine.
type receiver struct {
	conn *net.UnixConn
	buf  []byte
	oob  []byte
}

func newReceiver(c *net.UnixConn) *receiver {
	return &receiver{conn: c, buf: make([]byte, maxPacket), oob: make([]byte, unix.CmsgSpace(maxFiles*4))}
}

// next waits for a packet. The descriptors are the caller's to close; the text is
// good until the next call.
func (r *receiver) next() ([]byte, []int, error) {
	n, oobn, flags, _, err := r.conn.ReadMsgUnix(r.buf, r.oob)
	if errors.Is(err, unix.ECONNRESET) {
		// The peer closed the socket with unread packets. The kernel returns the error
		// once, before the packets that the peer sent.
		n, oobn, flags, _, err = r.conn.ReadMsgUnix(r.buf, r.oob)
	}
	if err != nil {
		return nil, nil, err
	}
	files, err := received(r.oob[:oobn])
	switch {
	case err != nil, flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0:
		closeAll(files)
		return nil, nil, protocol.ErrMalformed
	case n == 0:
		closeAll(files)
		return nil, nil, io.EOF
	}
	return r.buf[:n], files, nil
}

// received returns the descriptors that came with a packet.
func received(oob []byte) (files []int, err error) {
	list, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for i := range list {
		some, err := unix.ParseUnixRights(&list[i])
		if err != nil {
			return files, err
		}
		files = append(files, some...)
	}
	return files, nil
}

func closeAll(files []int) {
	for _, fd := range files {
		_ = unix.Close(fd)
	}
}

// connOf turns a descriptor into a connection, and takes it over.
func connOf(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "keeper")
	defer func() { _ = f.Close() }()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("the socket is none of ours"), c.Close())
	}
	return u, nil
}

// errStranger says that somebody else is at the other end.
var errStranger = errors.New("it belongs to another user")

// peerOf returns the process at the other end, which must be of our own user.
func peerOf(c *net.UnixConn) (*unix.Ucred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var got error
	if err := raw.Control(func(fd uintptr) {
		cred, got = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return nil, err
	}
	if got != nil {
		return nil, os.NewSyscallError("getsockopt", got)
	}
	if int(cred.Uid) != os.Geteuid() {
		return nil, errStranger
	}
	return cred, nil
}
