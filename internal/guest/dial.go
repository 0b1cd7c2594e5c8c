//go:build linux

package guest

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

var _ cove.Dialer = (*Conn)(nil)

// Dial connects to a port of the sandbox's loopback, under the contract of
// [cove.Dialer].
func (c *Conn) Dial(ctx context.Context, port int) (net.Conn, error) {
	if port < 1 || port > 65535 {
		return nil, cove.InvalidField("port", "%d is not a port; use 1 to 65535", port)
	}
	a, err := c.call(ctx, protocol.KindDial, protocol.File{Port: uint16(port)}.Encode())
	if err != nil {
		return nil, err
	}
	if !a.OK() {
		for _, s := range a.streams {
			s.Close()
		}
		if a.Reason == protocol.ReasonBusy {
			return nil, fault(a.Reply, "")
		}
		return nil, cove.Wrap(cove.Unavailable, errnoOf(a.Reply), "nobody listens on port %d of the sandbox; start a server there first", port)
	}
	if len(a.streams) != 1 || !isConnection(a.streams[0].FD()) {
		for _, s := range a.streams {
			s.Close()
		}
		err := lost(errors.New("it attached what it was not asked for"))
		c.fail(err)
		return nil, err
	}
	f := a.streams[0].File("dial")
	defer func() { _ = f.Close() }()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, cove.Wrap(cove.Internal, err, "the connection into the sandbox cannot be used")
	}
	return conn, nil
}

// isConnection reports whether an agent attached what it was asked for.
func isConnection(fd int) bool {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_STREAM {
		return false
	}
	family, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	return err == nil && slices.Contains([]int{unix.AF_INET, unix.AF_INET6, unix.AF_UNIX}, family)
}

// Kills is how often the kernel ended a process of the sandbox for want of memory, where
// the agent sees its control group. Agents of older builds cannot tell.
func (c *Conn) Kills(ctx context.Context) (int64, error) {
	a, err := files{c}.ask(ctx, protocol.KindKills, c.opts.Load().Dir, protocol.File{})
	if err != nil {
		return 0, err
	}
	d := protocol.NewDecoder(a.Body)
	n := d.Int()
	if err := d.End(); err != nil {
		err = lost(err)
		c.fail(err)
		return 0, err
	}
	return n, nil
}

// Usage is what the agent can count: CPU time, processes, and what is in use
// of the file system that holds the workspace. Memory is not among it.
func (c *Conn) Usage(ctx context.Context) (cove.Usage, error) {
	opts := c.opts.Load()
	var f protocol.File
	if opts.Shared {
		f.Depth = 1
	}
	a, err := files{c}.ask(ctx, protocol.KindUsage, opts.Dir, f)
	if err != nil {
		return cove.Usage{}, err
	}
	u, err := protocol.DecodeUsage(a.Body)
	if err != nil {
		err = lost(err)
		c.fail(err)
		return cove.Usage{}, err
	}
	return cove.Usage{CPU: time.Duration(max(u.CPU, 0)) * time.Microsecond, PIDs: int(u.PIDs), Disk: cove.Bytes(max(u.Disk, 0)), Files: max(u.Files, 0)}, nil
}
