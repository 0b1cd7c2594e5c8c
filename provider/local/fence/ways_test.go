//go:build linux

package fence_test

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/provider/local/fence"
)

// Sockets inside of a sandbox are answered from outside of it.
func TestWays(t *testing.T) {
	builders(t, func(t *testing.T, kind string) {
		b, err := open(t, kind, newPlan(t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		s := build(t, b, anyOrder)
		if got, _ := s.run(t, get("198.18.3.4")); !strings.Contains(got, "unreachable") {
			t.Errorf("before: %q", got)
		}
		fds, err := b.OpenWays(t.Context(), s.Process, fence.Ways{Local: []string{"198.18.0.0/15"}, Server: "198.18.0.1", Ports: []uint16{80}})
		if err != nil || len(fds) != 3 {
			t.Fatalf("ways: %d, %v", fds, err)
		}
		more, err := b.OpenWays(t.Context(), s.Process, fence.Ways{Local: []string{"::/0"}, Ports: []uint16{8443}, Both: true})
		if err != nil || len(more) != 1 {
			t.Fatalf("more ways: %d, %v", more, err)
		}
		for _, fd := range append(fds, more...) {
			defer unix.Close(fd)
		}
		answer(t, fds[2])
		answer(t, more[0])
		for script, want := range map[string]string{
			get("198.18.3.4"):              "hello 198.18.3.4:80",
			get("1.1.1.1"):                 "unreachable",
			get("2606:4700::1111", "8443"): "hello [2606:4700::1111]:8443",
			get("198.18.3.4", "81"):        "refused",
		} {
			if got, _ := s.run(t, script); !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q", script, got, want)
			}
		}
		// Programs of the sandbox have no power over it.
		if got, code := s.run(t, "python3 -c 'import socket; socket.socket().bind((\"0.0.0.0\", 81))'"); code == 0 {
			t.Errorf("a program has a privileged port: %s", got)
		}
		for _, w := range []fence.Ways{{Local: []string{"x"}}, {Server: "x"}, {Ports: []uint16{80}}, {Server: "10.0.0.1"}} {
			if fds, err := b.OpenWays(t.Context(), s.Process, w); err == nil {
				t.Errorf("%+v: %d", w, fds)
			}
		}
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		if _, err := b.OpenWays(t.Context(), int(null.Fd()), fence.Ways{}); !errors.Is(err, unix.EINVAL) {
			t.Errorf("no process: %v", err)
		}
	})
}

// get is a program that connects and prints what it hears.
func get(host string, port ...string) string {
	p := "80"
	if len(port) > 0 {
		p = port[0]
	}
	return "python3 -c 'import socket; print(socket.create_connection((\"" + host + "\", " + p + "), 5).recv(100).decode())'"
}

// answer says to everybody what address he asked for.
func answer(t *testing.T, fd int) {
	t.Helper()
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(dup), "socket")
	l, err := net.FileListener(f)
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "hello "+c.LocalAddr().String())
			c.Close()
		}
	}()
}
