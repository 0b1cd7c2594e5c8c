package fence

import (
	"net/netip"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/linux/netns"
)

// Ways are what leads out of a sandbox: sockets in its network that somebody
// outside answers, and the addresses that lead to them.
type Ways struct {
	Local  []string // ranges, such as 198.18.0.0/15, of which every address leads to the sockets
	Server string   // the address of the name server, which has sockets of its own; "" for none
	Ports  []uint16 // each gets a socket, at most MostPorts
	Both   bool     // the sockets of ports take IPv6, too
}

// MostPorts is how many sockets can be opened at once.
const MostPorts = 64

// domain is the port of name servers.
const domain = 53

func (w *Ways) encode(e *protocol.Encoder) {
	e.List(w.Local)
	e.Text(w.Server)
	e.Uint(uint64(len(w.Ports)))
	for _, p := range w.Ports {
		e.Uint(uint64(p))
	}
	e.Bool(w.Both)
}

func (w *Ways) decode(d *protocol.Decoder) {
	w.Local, w.Server = d.List(maxRanges, maxAddress), d.Text(maxAddress)
	for range d.UpTo(MostPorts) {
		w.Ports = append(w.Ports, uint16(d.UpTo(1<<16-1))) //nolint:gosec // bounded
	}
	w.Both = d.Bool()
}

// Bounds of what is sent.
const (
	maxRanges  = 8
	maxAddress = 64
)

// count is how many sockets there will be.
func (w *Ways) count() int {
	if w.Server != "" {
		return 2 + len(w.Ports)
	}
	return len(w.Ports)
}

// OpenWays opens ways out of a sandbox, which its first process names by a pidfd.
// It returns the name server's sockets, for packets and for streams, if there is
// one, and then those of the ports, in their order. The caller closes them, and
// must have the privileges of the builder.
func OpenWays(process int, w Ways) (sockets []int, err error) {
	err = netns.Within(process, func() error {
		for _, text := range w.Local {
			p, err := netip.ParsePrefix(text)
			if err != nil {
				return err
			}
			if err := netns.Local(p); err != nil {
				return err
			}
		}
		return w.listen(func(fd int, err error) error {
			if err == nil {
				sockets = append(sockets, fd)
			}
			return err
		})
	})
	if err != nil {
		closeAll(sockets)
		return nil, err
	}
	return sockets, nil
}

func (w *Ways) listen(add func(int, error) error) error {
	if w.Server != "" {
		server, err := netip.ParseAddr(w.Server)
		if err != nil {
			return err
		}
		at := netip.AddrPortFrom(server, domain)
		if err := add(netns.ListenPacket(at)); err != nil {
			return err
		}
		if err := add(netns.Listen(at)); err != nil {
			return err
		}
	}
	all := netip.IPv4Unspecified()
	if w.Both {
		all = netip.IPv6Unspecified()
	}
	for _, port := range w.Ports {
		if err := add(netns.Listen(netip.AddrPortFrom(all, port))); err != nil {
			return err
		}
	}
	return nil
}
