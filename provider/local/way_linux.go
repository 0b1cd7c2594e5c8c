//go:build !lean

package local

import (
	"context"
	"errors"
	"iter"
	"os"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// openPorts are those that lead out of a sandbox with mode open. Each needs a
// socket, which keeps programs of the sandbox from listening there: so they are
// those below 1024, where programs cannot listen anyway, and few more that are
// seldom listened on. Those of mail are not among them.
var openPorts = []uint16{21, 22, 43, 80, 88, 110, 119, 123, 143, 389, 443, 554, 563, 636, 853, 873, 989, 990, 993, 995, 8443, 9418, 11371}

// networks are those that sandboxes can have.
var networks = []cove.NetworkMode{cove.NetworkNone, cove.NetworkAllow, cove.NetworkOpen}

// way is how a sandbox gets out.
type way struct {
	*egress.Way

	gate gateway
	mode cove.NetworkMode
}

// reaching is a sandbox with a way out. It implements [cove.Egress] besides.
type reaching struct {
	cove.Sandbox

	s *sandbox
}

var _ cove.Egress = reaching{}

// Unwrap lets [cove.As] find the powers below.
func (r reaching) Unwrap() cove.Sandbox { return r.Sandbox }

// reach adds a way out to what others see of a sandbox, if it has one.
func (s *sandbox) reach(face cove.Sandbox) cove.Sandbox {
	if s.way == nil {
		return face
	}
	return reaching{face, s}
}

// leave gives a sandbox its way out, if its network has one.
func (s *sandbox) leave(ctx context.Context, n cove.Network) error {
	if n.Mode == cove.NetworkNone {
		return nil
	}
	w := &way{Way: egress.NewWay(s.p.cfg.Egress, n.Mode, openPorts), mode: n.Mode}
	c, ports, err := w.Begin(ctx, n, s.conn.Files())
	if err != nil {
		return err
	}
	list, err := s.made.crew().openSockets(ctx, s.made.process, n.Mode, true, ports)
	if err != nil {
		return err
	}
	if s.made.held != nil && s.p.cfg.Egress.World == nil {
		w.gate, err = openKeptGateway(ctx, s.made.held, c, list)
	} else {
		w.gate, err = openGateway(c, list, s.p.cfg.Egress.World)
	}
	if err != nil {
		return err
	}
	s.way = w
	return s.rehold(ctx, n)
}

// openSockets opens ways out of the sandbox of a process; first says that they
// are the first.
func (c crew) openSockets(ctx context.Context, process int, mode cove.NetworkMode, first bool, ports []uint16) (s sockets, err error) {
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	open := fence.Ways{}
	if mode == cove.NetworkOpen {
		open.Both = hasIPv6()
	}
	if first {
		one := open
		one.Server, one.Local = nameServer, []string{egress.Range.String()}
		if mode == cove.NetworkOpen {
			one.Local = append(one.Local, "0.0.0.0/0")
		}
		if one.Both {
			one.Local = append(one.Local, "::/0")
		}
		fds, err := c.openWays(ctx, process, one)
		if err != nil {
			return s, unopened(err)
		}
		s.packets, s.streams = fds[:1], fds[1:]
	}
	for part := range slices.Chunk(ports, fence.MostPorts) {
		more := open
		more.Ports = part
		fds, err := c.openWays(ctx, process, more)
		if err != nil {
			return s, unopened(err)
		}
		s.ports = append(s.ports, fds...)
	}
	return s, nil
}

// hasIPv6 reports whether the kernel has it.
var hasIPv6 = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/net/if_inet6")
	return err == nil
})

// unopened says why there is no way out.
func unopened(err error) error {
	if _, ok := errors.AsType[*cove.Error](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return cove.Wrap(cove.Conflict, err, "network.allow: a program in the sandbox listens on a port of the list: %s", err).
			With("field", "network.allow").Remedy("end the program, or leave the port out")
	case errors.Is(err, syscall.EPERM), errors.Is(err, fence.ErrEnded):
		return cove.Wrap(cove.Unavailable, err, "the sandbox can get no more ways out: what made it is gone").Remedy("make the sandbox anew")
	}
	return cove.Wrap(cove.Unavailable, err, "the way out of a sandbox cannot be opened: %s", err).Remedy("run cove doctor")
}

// SetNetwork implements [cove.Egress].
func (r reaching) SetNetwork(ctx context.Context, n cove.Network) error {
	if r.s.isGone() {
		return r.s.goneError()
	}
	w := r.s.way
	return w.Change(ctx, n, r.s.conn.Files(), func(ports []uint16) error {
		return r.open(ctx, ports)
	}, func(n cove.Network, c egress.Config) error {
		if err := w.gate.Set(ctx, c); err != nil {
			return err
		}
		return r.s.rehold(ctx, n)
	})
}

// open opens sockets for more ports, while nobody else changes the way.
func (r reaching) open(ctx context.Context, ports []uint16) error {
	by, process, err := r.s.process()
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(process) }()
	list, err := by.openSockets(ctx, process, r.s.way.mode, false, ports)
	if err != nil {
		return err
	}
	return r.s.way.gate.Listen(ctx, list)
}

// process returns another descriptor of the first process, which stays what it is
// when the sandbox is destroyed meanwhile.
func (s *sandbox) process() (crew, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.made == nil {
		return crew{}, -1, s.goneError()
	}
	fd, err := unix.FcntlInt(uintptr(s.made.process), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return crew{}, -1, cove.Wrap(cove.Exhausted, err, "the host has no descriptor left").Reason(cove.ReasonCapacity)
	}
	return s.made.crew(), fd, nil
}

// Connections implements [cove.Egress].
func (r reaching) Connections(ctx context.Context, after int64) iter.Seq2[cove.Connection, error] {
	return func(yield func(cove.Connection, error) bool) {
		if r.s.isGone() {
			yield(cove.Connection{}, r.s.goneError())
			return
		}
		list, err := r.s.way.gate.Connections(ctx, after)
		if err != nil {
			yield(cove.Connection{}, err)
			return
		}
		egress.Each(ctx, list)(yield)
	}
}

// Start implements [cove.Sandbox]: programs learn whom to trust, unless they were
// told otherwise.
func (r reaching) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	cmd.Env = r.s.way.Env(cmd.Env, r.s.env)
	return r.Sandbox.Start(ctx, cmd)
}
