package escape

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// flowLabel is IPV6_FLOWLABEL_MGR.
const flowLabel = 32

// keepOptions gives sockets of UDP what they keep of options: headers of packets, groups
// to receive from, labels. One of each is enough to show it.
func keepOptions(t *tally) {
	const lo = 1 // the number of the loopback in every namespace
	group4, group6 := []byte{239, 1, 2, 3}, append([]byte{0xff, 0x02}, make([]byte, 14)...)
	group6[15] = 0x77
	home4, home6 := []byte{127, 0, 0, 1}, append(make([]byte, 15), 1)
	header := make([]byte, 4096) // struct cmsghdr of a kind that the kernel goes over
	binary.NativeEndian.PutUint64(header, uint64(len(header)))
	route := slices.Concat([]byte{0, 2, 4, 0, 0, 0, 0, 0}, home6) // struct ipv6_sr_hdr
	label := make([]byte, 32)                                     // struct in6_flowlabel_req: get one, make it, for us alone
	copy(label, home6)
	label[21] = 1
	binary.NativeEndian.PutUint16(label[22:], 1)
	address := func(ip []byte) []byte { // struct sockaddr_storage
		b := make([]byte, 128)
		family, at := uint16(unix.AF_INET), 4
		if len(ip) == len(home6) {
			family, at = unix.AF_INET6, 8
		}
		binary.NativeEndian.PutUint16(b, family)
		copy(b[at:], ip)
		return b
	}
	request := func(addresses ...[]byte) []byte { // struct group_req, group_source_req
		b := slices.Concat(binary.NativeEndian.AppendUint32(nil, lo), []byte{0, 0, 0, 0})
		for _, ip := range addresses {
			b = append(b, address(ip)...)
		}
		return b
	}
	six := binary.NativeEndian.AppendUint32(slices.Clone(group6), lo)
	for _, o := range []struct {
		name                  string
		family, level, number int
		value                 []byte
	}{
		{"IP_ADD_MEMBERSHIP", unix.AF_INET, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, slices.Concat(group4, home4)},
		{"IP_ADD_SOURCE_MEMBERSHIP", unix.AF_INET, unix.IPPROTO_IP, unix.IP_ADD_SOURCE_MEMBERSHIP, slices.Concat(group4, home4, home4)},
		{"MCAST_JOIN_GROUP", unix.AF_INET, unix.IPPROTO_IP, unix.MCAST_JOIN_GROUP, request(group4)},
		{"MCAST_JOIN_SOURCE_GROUP", unix.AF_INET, unix.IPPROTO_IP, unix.MCAST_JOIN_SOURCE_GROUP, request(group4, home4)},
		{"MCAST_JOIN_GROUP of IPv6", unix.AF_INET6, unix.IPPROTO_IPV6, unix.MCAST_JOIN_GROUP, request(group6)},
		{"MCAST_JOIN_SOURCE_GROUP of IPv6", unix.AF_INET6, unix.IPPROTO_IPV6, unix.MCAST_JOIN_SOURCE_GROUP, request(group6, home6)},
		{"IPV6_JOIN_GROUP", unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, six},
		{"IPV6_2292PKTOPTIONS", unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_2292PKTOPTIONS, header},
		{"IPV6_RTHDR", unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_RTHDR, route},
		{"IPV6_FLOWLABEL_MGR", unix.AF_INET6, unix.IPPROTO_IPV6, flowLabel, label},
		{"SO_RCVLOWAT", unix.AF_INET, unix.SOL_SOCKET, unix.SO_RCVLOWAT, binary.NativeEndian.AppendUint32(nil, 1<<30)},
	} {
		t.make(call{name: o.name, twin: sys(unix.SYS_SETSOCKOPT, bad, uintptr(o.level), uintptr(o.number)), do: func() error {
			fd, err := unix.Socket(o.family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer func() { _ = unix.Close(fd) }()
			return unix.SetsockoptString(fd, o.level, o.number, string(o.value))
		}})
	}
}

// How much connections queue that are not accepted. The kernel lets one have 64 KiB, also
// where a sandbox has no bound of its own, unless a program asks for more.
const (
	manyQueues = 200
	mostQueued = 128 << 10
	queueAsked = 4 << 20
)

// fillQueues sends to connections that are not accepted, whose listeners ask for long
// queues, and says how much the kernel took in for them.
func fillQueues(m mission) verdict {
	var t tally
	for name, option := range map[string]int{"no option": 0, "SO_RCVBUF": unix.SO_RCVBUF, "SO_RCVBUFFORCE": unix.SO_RCVBUFFORCE, "SO_RCVLOWAT": unix.SO_RCVLOWAT} {
		all, err := queued(option)
		said := fmt.Sprintf("%d bytes with %s", all, name)
		switch {
		case err != nil:
			return breach(name + ": " + err.Error())
		case all >= manyQueues*mostQueued:
			t.through(said + " are queued on connections that are not accepted")
		default:
			t.stop("a bound on what is queued", said)
		}
	}
	return t.within(m)
}

// queued fills connections whose listeners have an option, until they are many or have
// too much, and returns how many bytes the kernel has taken in for a reader.
func queued(option int) (all int, err error) {
	var open []int
	defer func() {
		for _, fd := range open {
			_ = unix.Close(fd)
		}
	}()
	made := func() (int, error) {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			open = append(open, fd)
		}
		return fd, err
	}
	data := make([]byte, 2*mostQueued) // for each
	var to unix.Sockaddr
	for i := 0; i < manyQueues && all < manyQueues*mostQueued; i++ {
		fd, err := made()
		if err == nil && i%waitingAtOne == 0 {
			if to, err = listening(fd, option); err == nil {
				fd, err = made()
			}
		}
		if err != nil {
			return all, err
		}
		n, err := sent(fd, to, data)
		if err != nil {
			return all, err
		}
		all += n
	}
	return all, nil
}

// listening makes a socket listen, with an option that it may or may not get.
func listening(fd, option int) (unix.Sockaddr, error) {
	if option != 0 {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, queueAsked) // what comes of it is seen by what is queued
	}
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, waitingAtOne)); err != nil {
		return nil, err
	}
	return unix.Getsockname(fd)
}

// sent connects, sends what can be sent at once, with little of it waiting on our side,
// and returns how much has arrived.
func sent(fd int, to unix.Sockaddr, data []byte) (int, error) {
	const waiting, piece = 16 << 10, 4 << 10
	if err := errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, waiting), unix.Connect(fd, to), unix.SetNonblock(fd, true)); err != nil {
		return 0, err
	}
	n := 0
	for n < len(data) {
		put, err := unix.Write(fd, data[n:min(n+piece, len(data))])
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if err != nil {
			return 0, err
		}
		n += put
	}
	left, err := unix.IoctlGetInt(fd, unix.TIOCOUTQ)
	return n - left, err
}
