//go:build linux

package protocol

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminalBacklog is more than a terminal can hold for its reader.
const terminalBacklog = 128 << 10

// Drain hands on what is in a pipe, a socket or a terminal at the time of the
// call, and does not wait for more: whoever wrote and is gone loses nothing,
// and whoever goes on writing holds up nobody. Deadlines of the file, which must
// not block, mean nothing to it: it is called because one was set.
func Drain(f *os.File, to func([]byte) error) error {
	rc, err := f.SyscallConn()
	if err != nil {
		return err
	}
	left := backlog(rc)
	buf := make([]byte, min(left, 32<<10))
	for left > 0 {
		n := 0
		var got error
		err := rc.Control(func(fd uintptr) {
			n, got = unix.Read(int(fd), buf[:min(len(buf), left)])
		})
		switch {
		case err != nil:
			return err
		case errors.Is(got, unix.EINTR):
			continue
		case got != nil || n <= 0:
			return nil //nolint:nilerr // the end, nothing there, or a terminal without a program
		}
		left -= n
		if err := to(buf[:n]); err != nil {
			return err
		}
	}
	return nil
}

// backlog bounds what is to be read.
func backlog(rc syscall.RawConn) int {
	n := 0
	_ = rc.Control(func(fd uintptr) {
		if _, err := unix.IoctlGetTermios(int(fd), unix.TCGETS); err == nil {
			n = terminalBacklog // some of it may not be counted yet
			return
		}
		n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ)
	})
	return max(n, 0)
}

// AtEnd reports whether err is how a stream ends: its end, or that of the last
// program on a terminal.
func AtEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, syscall.EIO) }

// Pump hands to take all that can be read from f, in pieces of at most size bytes,
// until the end or an error of take. A deadline of f says that what is in it now is
// all that is wanted.
func Pump(f *os.File, size int, take func([]byte) error) {
	buf := make([]byte, size)
	for {
		n, err := f.Read(buf)
		if n > 0 && take(buf[:n]) != nil {
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			_ = Drain(f, take)
			return
		}
		if err != nil {
			return
		}
	}
}
