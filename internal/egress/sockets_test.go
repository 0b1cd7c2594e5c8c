package egress_test

import (
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
)

// handed returns a descriptor of a socket, and closes what it is of.
func handed(t *testing.T, s interface {
	File() (*os.File, error)
	Close() error
},
) int {
	t.Helper()
	defer s.Close()
	f, err := s.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestFromDescriptors(t *testing.T) {
	pc, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	at := tcp.Addr().String()
	s, err := egress.FromDescriptors([]int{handed(t, pc)}, nil, []int{handed(t, tcp)})
	if err != nil || len(s.DNS) != 1 || len(s.Stream) != 0 || len(s.TCP) != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	g, err := egress.Open(egress.Config{}, s, egress.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at); err == nil {
		if err := dead(conn); err != nil {
			t.Error(err)
		}
		conn.Close()
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if s, err := egress.FromDescriptors([]int{-1}, []int{-1}, nil); cove.CodeOf(err) != cove.Internal || len(s.DNS) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}
