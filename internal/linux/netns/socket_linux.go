package netns

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"

	"golang.org/x/sys/unix"
)

// backlog is how many connections wait to be accepted.
const backlog = 256

// Listen returns a descriptor of a socket for TCP in the namespace of the calling
// thread. An unspecified address of IPv6 takes IPv4 as well.
func Listen(at netip.AddrPort) (int, error) {
	fd, err := bind(at, unix.SOCK_STREAM)
	if err != nil {
		return -1, err
	}
	if err := unix.Listen(fd, backlog); err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("listen on %s: %w", at, err)
	}
	return fd, nil
}

// ListenPacket is Listen for UDP.
func ListenPacket(at netip.AddrPort) (int, error) { return bind(at, unix.SOCK_DGRAM) }

func bind(at netip.AddrPort, kind int) (int, error) {
	var family int
	var to unix.Sockaddr
	switch {
	case at.Addr().Is4():
		family, to = unix.AF_INET, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	case at.Addr().Is6():
		family, to = unix.AF_INET6, &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
	default:
		return -1, fmt.Errorf("socket without an address: %w", unix.EINVAL)
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("socket for %s: %w", at, err)
	}
	if family == unix.AF_INET6 {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if err == nil {
		err = unix.Bind(fd, to)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("bind %s: %w", at, err)
	}
	return fd, nil
}

var errSame = errors.New("the process has no network of its own")

// cookie is a number that only the namespace of the calling thread has. Minimum
// kernel: Linux 5.14.
func cookie() (uint64, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
}

// Within calls f on a thread that is in the network namespace of a process, which
// a pidfd names, and that ends afterwards. The caller needs CAP_SYS_ADMIN over
// that namespace and over its own, and must be allowed to trace the process. A
// process in the caller's own namespace is refused, where the kernel can tell.
// Minimum kernel: Linux 5.8.
func Within(process int, f func() error) error {
	done := make(chan error, 1)
	go within(process, f, done)
	return <-done
}

func within(process int, f func() error, done chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// The first thread of a process does not end with its goroutine, and would
		// stay where it went. It waits while another one goes.
		other := make(chan error, 1)
		go within(process, f, other)
		err := <-other
		runtime.UnlockOSThread()
		done <- err
		return
	}
	home, homeErr := cookie()
	if err := unix.Setns(process, unix.CLONE_NEWNET); err != nil {
		done <- fmt.Errorf("enter the network of a process: %w", err)
		return
	}
	if there, err := cookie(); err == nil && homeErr == nil && there == home {
		done <- errSame
		return
	}
	done <- f()
	// Still locked, the thread ends with us.
}
