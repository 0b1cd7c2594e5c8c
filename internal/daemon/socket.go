//go:build !lean

package daemon

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
)

// listenSocket makes the socket of a COVE_HOME whose lock we hold: one that is
// there was left by a server that was killed.
func listenSocket(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return ownSocket{UnixListener: l, uid: os.Geteuid()}, nil
}

// ownSocket accepts connections of its own user and of root; others are closed
// at once. The mode of the file says the same to those who cannot get around it.
type ownSocket struct {
	*net.UnixListener

	uid int
}

// Accept implements net.Listener.
func (s ownSocket) Accept() (net.Conn, error) {
	for {
		c, err := s.AcceptUnix()
		if err != nil {
			return nil, err
		}
		uid, err := peer(c)
		if err == nil && (uid == s.uid || uid == 0) {
			return c, nil
		}
		_ = c.Close() // a stranger gets no reason
	}
}

// peerKey finds the user at the other end of a request's connection. A request
// has no other way to know its connection.
type peerKey struct{}

// withPeer remembers the user at the other end of a connection to the socket.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	if u, ok := c.(*net.UnixConn); ok {
		if uid, err := peer(u); err == nil {
			return context.WithValue(ctx, peerKey{}, uid)
		}
	}
	return ctx
}

// userOf returns the principal of a request on the socket.
func userOf(r *http.Request) cove.Principal {
	if uid, ok := r.Context().Value(peerKey{}).(int); ok {
		return principal(uid)
	}
	return cove.Principal{Name: "unknown"} // who may do nothing
}

// peer returns the user at the other end, as the kernel knows it.
func peer(c *net.UnixConn) (uid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var inner error
	err = raw.Control(func(fd uintptr) {
		cred, inner = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, inner); err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
