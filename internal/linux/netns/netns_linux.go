// Package netns looks at network namespaces, wakes the loopback of a new one, and
// puts sockets into it that others use from outside.
//
// A new namespace has a sleeping loopback and nothing else, and that is what a
// sandbox without a network has. A range of addresses can be made local to it:
// what is sent there then goes to sockets in the namespace, and who holds those
// decides about it. The package makes no namespaces, which is the business of
// whoever clones, and it must not connect one to another: no packet ever leaves.
//
// Minimum kernel: Linux 3.8, and 5.8 to enter the namespace of a process.
package netns

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux"
)

// Loopback brings up lo in the namespace of the calling thread. It needs
// CAP_NET_ADMIN there.
func Loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback: socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo); err != nil {
		return fmt.Errorf("loopback: read flags: %w", err)
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("loopback: set flags: %w", err)
	}
	return nil
}

// Settings of a namespace. How many connections may wait for one listener was the
// kernel's own default for decades; what waits is charged to no control group. The other bounds the
// notes that the kernel keeps of connections that were closed, what one that is not
// accepted can queue (65,536 bytes are for those that a program reads from), and what a
// socket keeps of options.
var settings = []struct{ name, value string }{
	{"sys/net/core/somaxconn", "128"},
	{"sys/net/ipv4/tcp_max_tw_buckets", "16384"},
	{"sys/net/ipv4/tcp_rmem", "4096 8192 65536"},
	{"sys/net/core/optmem_max", "8192"}, // of the whole machine before Linux 6.7: not there
}

// Narrow has the namespace of the calling thread keep less of connections that no program
// uses. Proc is a descriptor of a /proc, or AT_FDCWD for that of the caller. It needs
// CAP_NET_ADMIN there. Where /proc/sys cannot be written to, as in most containers,
// everything stays as it is, and so does what the kernel has for the whole machine only.
func Narrow(proc int) error {
	for _, s := range settings {
		name := s.name
		if proc == unix.AT_FDCWD {
			name = "/proc/" + name
		}
		fd, err := unix.Openat(proc, name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err == unix.EROFS || err == unix.ENOENT {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		_, err = unix.Write(fd, []byte(s.value))
		_ = unix.Close(fd)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Interfaces returns the names of all interfaces in the namespace of the
// calling thread, up or down. A namespace of its own that nobody connected has
// lo, and on some kernels tunnels that lead nowhere.
func Interfaces() ([]string, error) {
	text, err := os.ReadFile("/proc/thread-self/net/dev")
	if err != nil {
		return nil, fmt.Errorf("interfaces: %w", err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(line, ":"); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names, nil
}

// Probe reports as [linux.Missing] why this host has no network namespaces.
func Probe() error { return probe("/proc") }

func probe(proc string) error {
	const feature = "network namespaces"
	if _, err := os.Stat(proc + "/self/ns/net"); err != nil {
		return &linux.Missing{Feature: feature, Why: "the kernel was built without them, or /proc is not mounted", Remedy: "use a kernel with CONFIG_NET_NS and mount /proc", Err: err}
	}
	text, err := linux.ReadSmall(proc + "/sys/user/max_net_namespaces")
	if err == nil && strings.TrimSpace(string(text)) == "0" {
		return &linux.Missing{Feature: feature, Why: "the host allows none", Remedy: "run: sysctl -w user.max_net_namespaces=10000"}
	}
	return nil
}
