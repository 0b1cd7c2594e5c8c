package netns

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// loopbackIndex is that of lo, the first interface of every namespace.
const loopbackIndex = 1

// Local makes all addresses of a range those of the namespace of the calling
// thread: whatever is sent to them goes to sockets in it. It needs CAP_NET_ADMIN
// there and a loopback that is up. A range that is local already is no error.
func Local(p netip.Prefix) error {
	if !p.IsValid() {
		return fmt.Errorf("local %s: %w", p, unix.EINVAL)
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("local %s: socket: %w", p, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Sendto(fd, localRoute(p.Masked()), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("local %s: send: %w", p, err)
	}
	buf := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil {
		return fmt.Errorf("local %s: receive: %w", p, err)
	}
	if n < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(buf[4:]) != unix.NLMSG_ERROR {
		return fmt.Errorf("local %s: %w", p, unix.EPROTO)
	}
	errno := unix.Errno(-binary.NativeEndian.Uint32(buf[unix.SizeofNlMsghdr:])) // it has its sign turned
	if errno != 0 && errno != unix.EEXIST {
		return fmt.Errorf("local %s: %w", p, errno)
	}
	return nil
}

// localRoute is the message that adds the route.
func localRoute(p netip.Prefix) []byte {
	family := byte(unix.AF_INET)
	if p.Addr().Is6() {
		family = unix.AF_INET6
	}
	dst := p.Addr().AsSlice()
	b := make([]byte, unix.SizeofNlMsghdr, 96)
	b = append(b,
		family, byte(p.Bits()), 0, 0, //nolint:gosec // at most 128; no source, no type of service
		unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC, unix.RT_SCOPE_HOST, unix.RTN_LOCAL,
		0, 0, 0, 0) // no flags
	if p.Bits() > 0 {
		b = attribute(b, unix.RTA_DST, dst)
	}
	b = attribute(b, unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, loopbackIndex))
	binary.NativeEndian.PutUint32(b[0:], uint32(len(b))) //nolint:gosec // less than a hundred
	binary.NativeEndian.PutUint16(b[4:], unix.RTM_NEWROUTE)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	return b
}

// attribute adds one, whose value has a length that is a multiple of four.
func attribute(b []byte, kind uint16, value []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(value))) //nolint:gosec // at most 20
	b = binary.NativeEndian.AppendUint16(b, kind)
	return append(b, value...)
}
