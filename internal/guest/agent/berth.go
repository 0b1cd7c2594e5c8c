//go:build linux

package agent

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// berths has the ports of ways out. What a host had stays bound when he is gone, so
// that no program gets it before the next one comes, who may have it at once.
type berths struct {
	mu    sync.Mutex
	hosts int // so far
	all   map[place]*berth
}

// place is what a socket is bound to.
type place struct {
	kind int
	addr [4]byte
	port int
}

// berth is one socket, and who has it now.
type berth struct {
	fd    int // a second descriptor of it
	owner *ways
}

// left notes that a host is gone.
func (b *berths) left() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hosts++
}

// clear gives back what nobody wants. A host takes what it wants before it starts a
// program.
func (b *berths) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for at, one := range b.all {
		if b.idle(one) {
			_ = unix.Close(one.fd)
			delete(b.all, at)
		}
	}
}

// idle reports whether nobody has a socket any more, or somebody who is gone.
func (b *berths) idle(one *berth) bool { return one.owner.closed.Load() || one.owner.host != b.hosts }

// bind returns a socket at a place, which may wait there already.
func (b *berths) bind(at place, w *ways) (*os.File, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.all[at]
	if one == nil {
		fd, err := bindTo(at)
		if err != nil {
			return nil, err
		}
		one = &berth{fd: fd}
	} else if !b.idle(one) {
		return nil, unix.EADDRINUSE
	}
	fd, err := unix.FcntlInt(uintptr(one.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		if one.owner == nil {
			_ = unix.Close(one.fd)
		}
		return nil, err
	}
	if b.all == nil {
		b.all = map[place]*berth{}
	}
	if one.owner != nil {
		one.owner.close()
	}
	one.owner, b.all[at] = w, one
	return os.NewFile(uintptr(fd), "way"), nil
}

// bindTo opens one socket.
func bindTo(at place) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, at.kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	// Who finds no place waits for a second.
	const waiting = 1024
	if at.kind == unix.SOCK_STREAM { // for packets it would let others have the place, too
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) // else bind says it
	}
	if err = unix.Bind(fd, &unix.SockaddrInet4{Port: at.port, Addr: at.addr}); err == nil && at.kind == unix.SOCK_STREAM {
		err = unix.Listen(fd, waiting)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
