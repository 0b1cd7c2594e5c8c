//go:build linux

package warden_test

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove/provider/gvisor/warden"
)

// spoken serves a connection, and returns the other end and what it ended with.
func spoken(t *testing.T) (*net.UnixConn, <-chan error) {
	t.Helper()
	noLeaks(t)
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		if ends[i], err = warden.Conn(fd); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ends[i].Close() })
	}
	ended := make(chan error, 1)
	go func() { ended <- warden.Serve(ends[0], &player{}) }()
	return ends[1], ended
}

func TestServeRefuses(t *testing.T) {
	for name, c := range map[string]struct{ message, answer string }{
		"an unknown verb": {`{"id":1,"verb":"dance","sandbox":"a"}`, "dance"},
		"no program":      {`{"id":1,"verb":"enter","sandbox":"a"}`, "not whole"},
		"no streams":      {`{"id":1,"verb":"enter","sandbox":"a","program":{"argv":["true"]}}`, "not whole"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, ended := spoken(t)
			if _, err := conn.Write([]byte(c.message)); err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 1<<10)
			n, err := conn.Read(buf)
			if err != nil || !strings.Contains(string(buf[:n]), c.answer) || !strings.Contains(string(buf[:n]), `"id":1`) {
				t.Errorf("%s, %v", buf[:n], err)
			}
			_ = conn.Close()
			if err := <-ended; err != nil {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// TestServeEnds: whoever does not keep to the language is not listened to.
func TestServeEnds(t *testing.T) {
	for name, message := range map[string]string{
		"no JSON":  "hello",
		"too long": `{"id":1,"verb":"` + strings.Repeat("x", 70<<10) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			conn, ended := spoken(t)
			if _, err := conn.Write([]byte(message)); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err == nil {
				t.Error("it did not mind")
			}
		})
	}
	t.Run("too many files", func(t *testing.T) {
		conn, ended := spoken(t)
		fd := int(os.Stdout.Fd())
		if _, _, err := conn.WriteMsgUnix([]byte(`{"id":1,"verb":"pause"}`), syscall.UnixRights(fd, fd, fd, fd, fd, fd, fd, fd), nil); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil {
			t.Error("it did not mind")
		}
	})
}

func TestConn(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer closeFiles(r, w)
	fd, err := syscall.Dup(int(r.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := warden.Conn(fd); err == nil {
		t.Error("a pipe is a connection")
	}
	if err := syscall.Close(fd); !errors.Is(err, syscall.EBADF) {
		t.Errorf("it was not taken over: %v", err)
	}
}
