package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local"
)

// TestWayOutUser runs it as an ordinary user.
func TestWayOutUser(t *testing.T) { linuxtest.Again(t, "^TestWayOutBeyondAKill$") }

// neighbor is a server on an address of this machine that is not a loopback, and
// on a port that leads out of sandboxes.
type neighbor struct {
	net.Listener

	seen atomic.Int64 // connections
}

func newNeighbor(t *testing.T) *neighbor {
	t.Helper()
	list, err := net.InterfaceAddrs()
	must(t, err)
	err = errors.New("there is no address beside the loopback")
	for _, a := range list {
		p, bad := netip.ParsePrefix(a.String())
		if bad != nil || !p.Addr().Is4() || p.Addr().IsLoopback() {
			continue
		}
		for _, port := range []string{"11371", "9418", "8443"} {
			var l net.Listener
			if l, err = net.Listen("tcp", net.JoinHostPort(p.Addr().String(), port)); err == nil {
				o := &neighbor{Listener: l}
				go o.serve()
				t.Cleanup(func() { _ = l.Close() })
				return o
			}
		}
	}
	linuxtest.Need(t, err)
	return nil
}

func (o *neighbor) serve() {
	for {
		c, err := o.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, "hello "+strconv.FormatInt(o.seen.Add(1), 10)+"\n")
		_ = c.Close()
	}
}

// letOut is a configuration that lets sandboxes reach an address.
func letOut(dir, host string) local.Config {
	cfg := keeping(dir)
	cfg.Egress.Private = []netip.Prefix{netip.PrefixFrom(netip.MustParseAddr(host), 32)}
	return cfg
}

// reaches opens a provider, makes a sandbox that reaches out again and again, and
// waits to be killed.
func reaches(args []string) error {
	ctx := context.Background()
	host, port, err := net.SplitHostPort(args[1])
	if err != nil {
		return err
	}
	p, err := local.New(letOut(args[0], host))
	if err != nil {
		return err
	}
	s, err := p.Create(ctx, cove.NewID(), cove.Spec{Network: cove.Network{Mode: cove.NetworkOpen}})
	if err != nil {
		return err
	}
	line := "while ! [ -e stop ]; do head -1 < /dev/tcp/" + host + "/" + port + "; sleep 0.02; done"
	if _, err := s.Start(ctx, cove.Command{Argv: []string{"bash", "-c", line}, Stdout: &safe{}, Stderr: &safe{}, Keep: "reaches"}); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(found{IDs: []cove.ID{s.ID()}, Processes: []int{local.PID(s)}}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// TestWayOutBeyondAKill is about a network that goes on while there is no server.
func TestWayOutBeyondAKill(t *testing.T) {
	server := newNeighbor(t)
	dir := t.TempDir()
	all := killed(t, "reaches", dir, server.Addr().String())
	before := server.seen.Load()
	ends(t, "it reaches out without us", func() bool { return server.seen.Load() > before+2 })
	host, _, _ := net.SplitHostPort(server.Addr().String())
	p := provider(t, letOut(dir, host))
	s, err := p.Attach(t.Context(), all.IDs[0])
	must(t, err)
	e, ok := cove.As[cove.Egress](s)
	if !ok {
		t.Fatal("the sandbox has lost its way out")
	}
	seen := int64(0)
	for c, err := range e.Connections(t.Context(), 0) {
		must(t, err)
		if c.Number <= seen || !c.Allowed || c.Host != host {
			t.Errorf("after %d comes %+v", seen, c)
		}
		seen = c.Number
	}
	if seen < before {
		t.Errorf("%d connections are known of %d", seen, before)
	}
	must(t, e.SetNetwork(t.Context(), cove.Network{Mode: cove.NetworkOpen}))
	now := server.seen.Load()
	ends(t, "it still reaches out", func() bool { return server.seen.Load() > now+2 })
	run(t, s, "touch stop")
	out := resume(t, s, "reaches", nil)
	if _, err := out.Wait(t.Context()); err != nil || !strings.HasPrefix(out.out.String(), "hello 1\nhello 2\n") {
		t.Errorf("it got %.200q and %.200q, %v", out.out.String(), out.errs.String(), err)
	}
	must(t, s.Destroy(t.Context()))
}
