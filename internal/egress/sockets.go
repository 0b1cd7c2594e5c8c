package egress

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/cove-sandbox/cove"
)

// FromDescriptors makes sockets of descriptors that came from elsewhere: of the
// name server, for packets and for streams, where there is one, and of TCP. The
// descriptors are closed, whatever is returned.
func FromDescriptors(dns, stream, tcp []int) (s Sockets, err error) {
	var errs []error
	packets := func(f *os.File) {
		c, err := net.FilePacketConn(f)
		if err != nil {
			errs = append(errs, fmt.Errorf("socket for packets: %w", err))
			return
		}
		s.DNS = append(s.DNS, c)
	}
	listener := func(to *[]net.Listener) func(*os.File) {
		return func(f *os.File) {
			l, err := net.FileListener(f)
			if err != nil {
				errs = append(errs, fmt.Errorf("socket for connections: %w", err))
				return
			}
			*to = append(*to, l)
		}
	}
	for _, each := range []struct {
		fds []int
		use func(*os.File)
	}{{dns, packets}, {stream, listener(&s.Stream)}, {tcp, listener(&s.TCP)}} {
		for _, fd := range each.fds {
			f := os.NewFile(uintptr(fd), "socket")
			if f == nil {
				errs = append(errs, os.ErrInvalid)
				continue
			}
			each.use(f)
			_ = f.Close() // the socket is held by another one now
		}
	}
	if len(errs) > 0 {
		s.close()
		return Sockets{}, cove.Wrap(cove.Internal, errors.Join(errs...), "the sockets of a sandbox cannot be used")
	}
	return s, nil
}
