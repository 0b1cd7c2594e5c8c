package escape

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// socketKind is the arguments of one call of socket.
type socketKind struct {
	name                   string
	family, kind, protocol int
}

var (
	rawSockets = []socketKind{
		{"raw IPv4", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP},
		{"raw TCP", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP},
		{"raw IPv6", unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6},
	}
	packetSockets = []socketKind{
		{"packet", unix.AF_PACKET, unix.SOCK_RAW, 0},
		{"packet, cooked", unix.AF_PACKET, unix.SOCK_DGRAM, 0},
		{"packet, old", unix.AF_INET, unix.SOCK_PACKET, 0},
	}
	vsockSockets   = []socketKind{{"vsock", unix.AF_VSOCK, unix.SOCK_STREAM, 0}, {"vsock, datagrams", unix.AF_VSOCK, unix.SOCK_DGRAM, 0}}
	netlinkSockets = []socketKind{
		{"netlink route", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE},
		{"netlink audit", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT},
		{"netlink uevent", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT},
		{"netlink netfilter", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER},
		{"netlink generic", unix.AF_NETLINK, unix.SOCK_DGRAM, unix.NETLINK_GENERIC},
	}
	algSockets = []socketKind{{"alg", unix.AF_ALG, unix.SOCK_SEQPACKET, 0}}
)

func socketsOf(kinds []socketKind) func(mission) verdict {
	return func(mission) verdict {
		var t tally
		for _, k := range kinds {
			t.make(k.call())
		}
		return t.verdict()
	}
}

func (k socketKind) call() call {
	return call{
		name: k.name,
		do:   opened(unix.SYS_SOCKET, uintptr(k.family), uintptr(k.kind|unix.SOCK_CLOEXEC), uintptr(k.protocol)),
	}
}

// rareSockets tries every family that no other attack does.
func rareSockets(mission) verdict {
	var t tally
	usual := []int{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK, unix.AF_PACKET, unix.AF_VSOCK, unix.AF_ALG}
	const families = 64
	for family := range families {
		if slices.Contains(usual, family) {
			continue
		}
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_SEQPACKET} {
			err := opened(unix.SYS_SOCKET, uintptr(family), uintptr(kind|unix.SOCK_CLOEXEC), 0)()
			if err == nil {
				t.through("a socket of family " + strconv.Itoa(family))
				continue
			}
			t.stop(errnoName(err), "")
		}
	}
	return t.verdict()
}

// dialTime is how long an address may take to answer.
const dialTime = 400 * time.Millisecond

// dial calls an address, and says what stopped it. Somebody who refuses has
// been reached, unless he is the sandbox itself.
func dial(network, address string, own bool) (by string, through bool) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTime)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	switch {
	case err == nil:
		defer func() { _ = c.Close() }()
		if network == "udp" {
			return "", false // nobody has been reached before there is an answer
		}
		_ = c.SetReadDeadline(time.Now().Add(dialTime))
		said, _ := io.ReadAll(io.LimitReader(c, 64))
		return strconv.Quote(string(said)), !own || string(said) == greeting
	case errors.Is(err, syscall.ECONNREFUSED) && !own:
		return "refused by " + address, true
	case errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded):
		return "no answer", false
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "no name server", false
	}
	return meaning(err), false
}

// dialAll calls many addresses at once.
func dialAll(network string, addresses []string, own bool) verdict {
	var t tally
	var mu sync.Mutex
	var wait sync.WaitGroup
	for _, address := range addresses {
		wait.Go(func() {
			by, through := dial(network, address, own)
			mu.Lock()
			defer mu.Unlock()
			if through {
				t.through("reached " + address + ": " + by)
			} else {
				t.stop(by, "")
			}
		})
	}
	wait.Wait()
	return t.verdict()
}

func callLoopback(m mission) verdict {
	v := dialAll("tcp", append(m.TCP, strings.Replace(m.TCP[0], "127.0.0.1", "localhost", 1), strings.Replace(m.TCP[0], "127.0.0.1", "0.0.0.0", 1), strings.Replace(m.TCP[0], "127.0.0.1", "127.0.0.53", 1)), true)
	if c, err := net.Dial("udp", m.UDP); err == nil { //nolint:noctx // it sends nothing yet
		_, _ = c.Write([]byte(m.Token)) // the host knows whether it arrived
		_ = c.Close()
	}
	return v
}

func callSockets(m mission) verdict {
	names := append(hostNames(m.Unix), "/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock",
		"/run/systemd/private", "/run/dbus/system_bus_socket", "/tmp/.X11-unix/X0")
	var usable []string
	for _, name := range names {
		if len(name) < 100 { // longer ones do not fit into an address
			usable = append(usable, name)
		}
	}
	return dialAll("unix", usable, true).also(onlyOwn(usable))
}

// onlyOwn refuses sockets that answer at all: a sandbox that was just made has
// none.
func onlyOwn(names []string) verdict {
	for _, name := range names {
		if _, through := dial("unix", name, false); through {
			return breach("reached the socket " + name)
		}
	}
	return heldBy("")
}

func callAbstract(m mission) verdict { return dialAll("unix", []string{m.Abstract}, true) }

// ports are where machines usually listen.
func ports(addresses []string, numbers ...string) []string {
	var all []string
	for _, a := range addresses {
		for _, n := range numbers {
			all = append(all, net.JoinHostPort(a, n))
		}
	}
	return all
}

func callPrivate(m mission) verdict {
	private := append(m.Private, "10.0.0.1", "10.0.2.2", "172.17.0.1", "192.168.0.1", "192.168.1.1", "192.168.65.2", "100.64.0.1", "fd00::1")
	if m.Network == openNetwork {
		return exchangeAll(ports(private, "22", "53", "80", "2375"), true)
	}
	return dialAll("tcp", ports(private, "22", "53", "80", "2375"), false)
}

func callMetadata(m mission) verdict {
	if m.Network == openNetwork {
		return exchangeAll(ports(metadataAddresses, "80"), true)
	}
	return dialAll("tcp", append(ports(metadataAddresses, "80"), "metadata.google.internal:80"), false)
}

func callPublic(mission) verdict {
	return dialAll("tcp", append(ports([]string{"1.1.1.1", "8.8.8.8", "9.9.9.9", "2606:4700:4700::1111"}, "53", "443"), "example.com:443"), false)
}
