//go:build linux

package keeper_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
	"github.com/cove-sandbox/cove/internal/keeper"
)

// listen is a socket for a gateway, and its address.
func listen(t *testing.T) (int, string) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(t, err)
	defer func() { must(t, l.Close()) }()
	f, err := l.File()
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return int(f.Fd()), l.Addr().String()
}

// knock connects, and is refused.
func knock(address string) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return // it was refused that fast
	}
	_, _ = io.Copy(io.Discard, c)
	_ = c.Close()
}

// known waits until the gateway has written n connections down.
func known(t *testing.T, c *keeper.Client, n int) []cove.Connection {
	t.Helper()
	for {
		list, err := c.Connections(t.Context(), "box", 0)
		must(t, err)
		if len(list) >= n {
			return list
		}
	}
}

func TestGate(t *testing.T) {
	_, c := serve(t)
	ctx := t.Context()
	put(t, c, "box")
	cfg := egress.Config{Network: cove.Network{Mode: cove.NetworkAllow, Allow: []string{"example.com"}}}
	if err := c.Set(ctx, "box", cfg); !errors.Is(err, keeper.ErrUnknown) {
		t.Errorf("a sandbox without a way out gives %v", err)
	}
	var s keeper.Sockets
	var addresses []string
	for range 40 { // more than a message has room for
		fd, address := listen(t)
		s.Ports, addresses = append(s.Ports, fd), append(addresses, address)
	}
	must(t, c.Gate(ctx, "box", cfg, s))
	if err := c.Gate(ctx, "box", cfg, keeper.Sockets{}); !errors.Is(err, keeper.ErrTaken) {
		t.Errorf("a second way out gives %v", err)
	}
	more, address := listen(t)
	must(t, c.Listen(ctx, "box", keeper.Sockets{Ports: []int{more}}))
	for range 2 {
		for _, a := range append(addresses, address) {
			knock(a)
		}
	}
	want := 2 * (len(addresses) + 1)
	list := known(t, c, want)
	if len(list) != want || list[0].Allowed || list[0].Number != 1 {
		t.Errorf("%d connections are known, want %d: %+v", len(list), want, list[:1])
	}
	rest, err := c.Connections(ctx, "box", list[len(list)-2].Number)
	if err != nil || len(rest) != 1 {
		t.Errorf("after the last but one are %v, %v", rest, err)
	}
	cfg.Secrets = nil
	for i := range 64 { // too much for a message
		cfg.Secrets = append(cfg.Secrets, egress.Secret{
			Name: fmt.Sprint("s", i), Hosts: []string{"example.com"}, Header: "X-Key", Value: strings.Repeat("k", 10<<10),
		})
	}
	must(t, c.Set(ctx, "box", cfg))
	cfg.Network.Mode = "other"
	if err := c.Set(ctx, "box", cfg); err == nil || strings.Contains(err.Error(), "kkkk") {
		t.Errorf("a mode that is none gives %v", err)
	}
	must(t, c.Ungate(ctx, "box"))
	if err := c.Ungate(ctx, "box"); !errors.Is(err, keeper.ErrUnknown) {
		t.Errorf("closing it again gives %v", err)
	}
	if _, err := c.Connections(ctx, "box", 0); !errors.Is(err, keeper.ErrUnknown) {
		t.Errorf("what is closed knows %v", err)
	}
	if err := c.Gate(ctx, "none", cfg, keeper.Sockets{}); !errors.Is(err, keeper.ErrUnknown) {
		t.Errorf("a sandbox that is unknown gives %v", err)
	}
}

// TestGateGoesOn is about a way out while there is no server, and its end with the
// sandbox.
func TestGateGoesOn(t *testing.T) {
	dir, c := serve(t)
	put(t, c, "box")
	fd, address := listen(t)
	must(t, c.Gate(t.Context(), "box", egress.Config{}, keeper.Sockets{Ports: []int{fd}}))
	must(t, c.Close())
	knock(address)
	again, err := keeper.Connect(t.Context(), dir)
	must(t, err)
	if list := known(t, again, 1); len(list) != 1 {
		t.Errorf("known are %v", list)
	}
	must(t, again.Drop(t.Context(), "box"))
	must(t, again.Close())
}

func TestGateRefused(t *testing.T) {
	_, c := serve(t)
	ctx := t.Context()
	put(t, c, "box")
	file, err := os.Open(os.DevNull)
	must(t, err)
	defer func() { _ = file.Close() }()
	if err := c.Gate(ctx, "box", egress.Config{}, keeper.Sockets{Ports: []int{int(file.Fd())}}); err == nil {
		t.Error("a file is taken for a socket")
	}
	if err := c.Gate(ctx, "box", egress.Config{Network: cove.Network{Mode: "other"}}, keeper.Sockets{}); err == nil {
		t.Error("a mode that is none is taken")
	}
	must(t, c.Gate(ctx, "box", egress.Config{}, keeper.Sockets{}))
	if err := c.Listen(ctx, "box", keeper.Sockets{Streams: []int{int(file.Fd())}, Packets: []int{int(file.Fd())}}); err == nil {
		t.Error("a file is taken for a socket")
	}
	must(t, c.Ungate(ctx, "box"))
}
