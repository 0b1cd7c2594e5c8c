package egress_test

import (
	"io"
	"net"
	"testing"
)

// BenchmarkRelay moves bytes through a gateway, and for comparison without one.
func BenchmarkRelay(b *testing.B) {
	const size = 64 << 20
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		block := make([]byte, 1<<20)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			for range size / len(block) {
				if _, err := c.Write(block); err != nil {
					break
				}
			}
			c.Close()
		}
	}()
	for name, dial := range map[string]func() (net.Conn, error){
		"direct":  func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) },
		"gateway": through(b, l.Addr().String()),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				c, err := dial()
				if err != nil {
					b.Fatal(err)
				}
				n, err := io.Copy(io.Discard, c)
				c.Close()
				if n != size || err != nil {
					b.Fatal(n, err)
				}
			}
		})
	}
}

func through(b *testing.B, server string) func() (net.Conn, error) {
	w := newWorld()
	w.put("a.test", server, "93.184.216.34")
	in := open(b, w, allow("a.test:%"))
	return func() (net.Conn, error) { return in.dial("a.test") }
}
