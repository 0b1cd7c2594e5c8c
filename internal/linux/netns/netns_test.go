package netns_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/netns"
)

func TestMain(m *testing.M) {
	linuxtest.Main(m, map[string]linuxtest.Func{"alone": alone, "denied": denied, "wait": wait, "ways": ways})
}

// alone runs in a network namespace of its own.
func alone([]string) error {
	names, err := netns.Interfaces()
	if err != nil || !slices.Contains(names, "lo") || slices.Contains(names, "eth0") {
		return fmt.Errorf("interfaces %v: %w", names, err)
	}
	if conn, err := dialSelf(); err == nil {
		_ = conn.Close()
		return errors.New("the loopback is up already")
	}
	for range 2 {
		if err := netns.Loopback(); err != nil {
			return err
		}
	}
	conn, err := dialSelf()
	if err != nil {
		return err
	}
	return errors.Join(conn.Close(), narrow())
}

// narrow looks at what a namespace keeps of connections. Both ways to name a /proc
// lead to the same.
func narrow() error {
	proc, err := unix.Open("/proc", unix.O_PATH, 0)
	if err != nil {
		return err
	}
	defer unix.Close(proc)
	for _, fd := range []int{proc, unix.AT_FDCWD} {
		if err := netns.Narrow(fd); err != nil {
			return err
		}
		for name, want := range map[string]string{
			"core/somaxconn": "128", "ipv4/tcp_max_tw_buckets": "16384", "ipv4/tcp_rmem": "4096\t8192\t65536", "core/optmem_max": "8192",
		} {
			path := "/proc/sys/net/" + name
			if err := unix.Access(path, unix.W_OK); err == unix.EROFS || err == unix.ENOENT {
				continue // not possible here
			}
			if text, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(text)) != want {
				return fmt.Errorf("%s is %q: %w", name, text, err)
			}
		}
	}
	return queue()
}

// queue sends to connections that are not accepted, and looks how much the kernel takes in
// for each.
func queue() error {
	if unix.Access("/proc/sys/net/ipv4/tcp_rmem", unix.W_OK) == unix.EROFS {
		return nil // there is no bound to test
	}
	const connections, most = 100, 16 << 10
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	data, all := make([]byte, 64<<10), 0
	for range connections {
		c, err := net.Dial("tcp4", l.Addr().String())
		if err != nil {
			return err
		}
		defer c.Close()
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			return err
		}
		if err := raw.Control(func(fd uintptr) {
			var n, left int
			if n, err = unix.Write(int(fd), data); err == nil { // Go's sockets do not wait
				left, err = unix.IoctlGetInt(int(fd), unix.TIOCOUTQ)
			}
			all += n - left
		}); err != nil {
			return err
		}
		if err != nil {
			return err
		}
	}
	if all > connections*most {
		return fmt.Errorf("%d bytes are queued on %d connections that are not accepted", all, connections)
	}
	return nil
}

// dialSelf makes a packet go from the loopback to the loopback.
func dialSelf() (net.Conn, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return net.Dial("tcp", l.Addr().String())
}

// ways makes ranges local and sockets for them, in the namespace of a child.
func ways([]string) error {
	child := exec.Command("/bin/sleep", "60")
	fd := -1
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, PidFD: &fd}
	if err := child.Start(); err != nil {
		return err
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
		_ = unix.Close(fd)
	}()
	before, err := netns.Interfaces()
	if err != nil {
		return err
	}
	for _, step := range []func() error{netns.Loopback, reach} {
		if err := netns.Within(fd, step); err != nil {
			return err
		}
	}
	if after, err := netns.Interfaces(); err != nil || !slices.Equal(before, after) {
		return fmt.Errorf("a thread of ours stayed there: %v, %w", after, err)
	}
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return err
	}
	defer unix.Close(self)
	if err := netns.Within(self, func() error { return nil }); err == nil {
		return errors.New("our own network was entered")
	}
	if err := netns.Within(0, func() error { return nil }); err == nil {
		return errors.New("it entered what is no process")
	}
	return nil
}

// reach runs in a namespace with a loopback.
func reach() error {
	names, all, six := netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")
	if _, err := netns.ListenPacket(netip.MustParseAddrPort("198.18.0.1:53")); !errors.Is(err, unix.EADDRNOTAVAIL) {
		return fmt.Errorf("an address that is not there: %w", err)
	}
	for range 2 {
		if err := netns.Local(names); err != nil {
			return err
		}
	}
	dns, err := netns.ListenPacket(netip.MustParseAddrPort("198.18.0.1:53"))
	if err != nil {
		return err
	}
	defer unix.Close(dns)
	web, err := netns.Listen(netip.MustParseAddrPort("0.0.0.0:80"))
	if err != nil {
		return err
	}
	defer unix.Close(web)
	if _, err := netns.Listen(netip.MustParseAddrPort("0.0.0.0:80")); !errors.Is(err, unix.EADDRINUSE) {
		return fmt.Errorf("a second one: %w", err)
	}
	if err := dial("198.18.7.7:80"); err != nil {
		return err
	}
	for _, far := range []string{"93.184.216.34:80", "[2606:4700::1111]:81"} {
		if err := dial(far); err == nil {
			return errors.New("an address that is not local was reached: " + far)
		}
	}
	for _, p := range []netip.Prefix{all, six} {
		if err := netns.Local(p); err != nil {
			return err
		}
	}
	both, err := netns.Listen(netip.MustParseAddrPort("[::]:81"))
	if err != nil {
		return err
	}
	defer unix.Close(both)
	for _, far := range []string{"93.184.216.34:80", "93.184.216.34:81", "[2606:4700::1111]:81"} {
		if err := dial(far); err != nil {
			return err
		}
	}
	if err := netns.Local(netip.Prefix{}); !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("no range: %w", err)
	}
	if _, err := netns.Listen(netip.AddrPort{}); !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("no address: %w", err)
	}
	return nil
}

// dial connects on the calling thread; the net package would move to another.
func dial(address string) error {
	a := netip.MustParseAddrPort(address)
	family, to := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()})
	if a.Addr().Is4() {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, to); err != nil {
		return fmt.Errorf("connect to %s: %w", address, err)
	}
	return nil
}

func denied([]string) error {
	if err := netns.Local(netip.MustParsePrefix("198.18.0.0/15")); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("a route of others: %w", err)
	}
	err := netns.Loopback()
	if !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "set flags") {
		return fmt.Errorf("the loopback of others: %w", err)
	}
	return nil
}

func wait([]string) error {
	_, err := os.Stdin.Read(make([]byte, 1))
	return err
}

func TestLoopback(t *testing.T) {
	linuxtest.Need(t, netns.Probe())
	linuxtest.Users(t, func(t *testing.T, user bool) {
		linuxtest.NoLeaks(t, "")
		c := linuxtest.Child{Name: "alone", User: user, Clone: unix.CLONE_NEWNET}
		if user {
			c.Clone |= unix.CLONE_NEWUSER
		}
		linuxtest.OK(t, c)
	})
}

func TestWays(t *testing.T) {
	linuxtest.Need(t, netns.Probe())
	linuxtest.Users(t, func(t *testing.T, user bool) {
		linuxtest.NoLeaks(t, "")
		c := linuxtest.Child{Name: "ways", User: user}
		if user {
			c.Clone = unix.CLONE_NEWUSER
		}
		linuxtest.OK(t, c)
	})
}

func TestLoopbackNeedsPrivileges(t *testing.T) {
	linuxtest.OK(t, linuxtest.Child{Name: "denied", User: true})
}

func TestProbe(t *testing.T) {
	dir := t.TempDir()
	err := netns.ProbeAt(dir)
	if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(linux.RemedyOf(err), "CONFIG_NET_NS") {
		t.Errorf("without namespaces: %v", err)
	}
	for name, text := range map[string]string{"self/ns/net": "", "sys/user/max_net_namespaces": "0\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := netns.ProbeAt(dir); !strings.Contains(linux.RemedyOf(err), "max_net_namespaces") {
		t.Errorf("with none allowed: %v", err)
	}
}
