//go:build linux

package uncharged_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/netns"
	"github.com/cove-sandbox/cove/internal/linux/uncharged"
)

func TestMain(m *testing.M) {
	linuxtest.Main(m, map[string]linuxtest.Func{"connections": connections, "datagrams": datagrams})
}

func open(t *testing.T) *uncharged.Watch {
	t.Helper()
	w, err := uncharged.Open("/proc", "/proc/thread-self")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// take takes n locks of single bytes that do not touch, in files of a directory.
func take(t *testing.T, dir string, n, command int) {
	t.Helper()
	const each = 1000 // in one file: the kernel goes through them one by one
	for taken := 0; taken < n; {
		f, err := os.Create(filepath.Join(dir, strconv.Itoa(command)+"-"+strconv.Itoa(taken)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		for i := 0; i < each && taken < n; i++ {
			lock := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(2 * (each - i)), Len: 1}
			if err := unix.FcntlFlock(f.Fd(), command, &lock); err != nil {
				t.Fatal(err)
			}
			taken++
		}
	}
}

// TestLocks: locks that a process holds are counted when the kernel holds more, and at
// times anyway. Those that every sandbox sees are not.
func TestLocks(t *testing.T) {
	w := open(t)
	take(t, t.TempDir(), uncharged.MostLocks+1, unix.F_OFD_SETLK)
	w.Grow(2 * uncharged.Step)
	if e, found := w.Look(); found {
		t.Fatalf("locks without a process are counted: %+v", e)
	}
	take(t, t.TempDir(), uncharged.MostLocks+1, unix.F_SETLK)
	w.Grow(2 * uncharged.Step)
	e, found := w.Look()
	if !found || e.Kind != uncharged.Locks || e.Count <= e.Most || e.Most != uncharged.MostLocks {
		t.Fatalf("too many locks: %+v, %t", e, found)
	}
	w.Grow(0)
	if e, found := w.Look(); found {
		t.Errorf("it counts without a reason: %+v", e)
	}
	for range uncharged.Seldom {
		if _, found = w.Look(); found {
			break
		}
	}
	if !found {
		t.Error("it never counts when others give back what was taken here")
	}
}

// TestConnections: those that are not accepted are counted, though the process that made them has
// closed them.
func TestConnections(t *testing.T) {
	linuxtest.Need(t, netns.Probe())
	linuxtest.OK(t, linuxtest.Child{Name: "connections", Clone: unix.CLONE_NEWNET, User: os.Geteuid() != 0})
}

// ownNetwork watches a network namespace in which the loopback works.
func ownNetwork() (*uncharged.Watch, error) {
	if err := netns.Loopback(); err != nil {
		return nil, err
	}
	return uncharged.Open("/proc", "/proc/self")
}

func connections([]string) error {
	w, err := ownNetwork()
	if err != nil {
		return err
	}
	defer w.Close()
	if e, found := w.Look(); found {
		return fmt.Errorf("before there are any: %+v", e)
	}
	const each = 100
	for made := 0; made <= uncharged.MostSockets; made += each {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()
		for range each {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				return err
			}
			_ = c.Close()
		}
	}
	if e, found := w.Look(); !found || e.Kind != uncharged.Sockets || e.Count <= e.Most {
		return fmt.Errorf("too many connections: %+v, %t", e, found)
	}
	return nil
}

// TestDatagrams: sockets of UDP count together with connections, of both families.
func TestDatagrams(t *testing.T) {
	linuxtest.Need(t, netns.Probe())
	linuxtest.OK(t, linuxtest.Child{Name: "datagrams", Clone: unix.CLONE_NEWNET, User: os.Geteuid() != 0})
}

func datagrams([]string) error {
	w, err := ownNetwork()
	if err != nil {
		return err
	}
	defer w.Close()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	families := []struct {
		family int
		at     unix.Sockaddr
	}{{unix.AF_INET, &unix.SockaddrInet4{Port: 4000}}, {unix.AF_INET6, &unix.SockaddrInet6{Port: 4001}}}
	for made := 1; made <= uncharged.MostSockets; made++ {
		if e, found := w.Look(); found && e.Kind == uncharged.Sockets { // locks are those of the whole machine here
			return fmt.Errorf("with %d sockets: %+v", made, e)
		}
		of := families[made%len(families)]
		fd, err := unix.Socket(of.family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1), unix.Bind(fd, of.at)); err != nil {
			return err
		}
	}
	if e, found := w.Look(); !found || e.Kind != uncharged.Sockets || e.Count != uncharged.MostSockets+1 {
		return fmt.Errorf("too many sockets: %+v, %t", e, found)
	}
	return nil
}

// TestOpenFails: what cannot be seen is an error, and nothing stays open.
func TestOpenFails(t *testing.T) {
	linuxtest.NoLeaks(t, "")
	for _, of := range [][2]string{{"/nowhere", "/proc/self"}, {"/proc", "/nowhere"}} {
		if _, err := uncharged.Open(of[0], of[1]); err == nil {
			t.Errorf("%v is watched", of)
		}
	}
}
