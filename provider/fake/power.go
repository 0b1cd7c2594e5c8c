package fake

import (
	"context"
	"net"
	"os"

	"github.com/cove-sandbox/cove"
)

// Each power is a layer around the plain value, so that a fake without it does
// not have its methods either: cove.As walks the layers.

func (s *sandbox) layers() cove.Sandbox {
	var face cove.Sandbox = s
	if s.provider.has(cove.PowerPause) {
		face = pausing{face, s}
	}
	if s.provider.has(cove.PowerSnapshot) {
		face = snapshotting{face, s}
	}
	if s.provider.has(cove.PowerFork) {
		face = forking{face, s}
	}
	if s.provider.has(cove.PowerDial) {
		face = dialing{face, s}
	}
	if s.provider.has(cove.PowerResume) {
		face = resuming{face, s}
	}
	if s.provider.has(cove.PowerTrial) {
		face = trying{face, s}
	}
	if s.machine.way() != nil {
		face = leading{face, s}
	}
	return face
}

func (p *Provider) layers() cove.Provider {
	var chain cove.Provider
	if p.has(cove.PowerPrepare) {
		chain = preparing{p, chain}
	}
	if p.has(cove.PowerSnapshot) {
		chain = keeping{p, chain}
	}
	return chain
}

var (
	_ cove.Pauser         = pausing{}
	_ cove.Snapshotter    = snapshotting{}
	_ cove.Forker         = forking{}
	_ cove.Dialer         = dialing{}
	_ cove.Preparer       = preparing{}
	_ cove.SnapshotKeeper = keeping{}
)

type pausing struct {
	cove.Sandbox

	s *sandbox
}

func (l pausing) Unwrap() cove.Sandbox { return l.Sandbox }

func (l pausing) Pause(ctx context.Context) error {
	if err := l.s.ready(ctx, "pause"); err != nil {
		return err
	}
	l.s.machine.pause()
	return nil
}

func (l pausing) Resume(ctx context.Context) error {
	if err := l.s.ready(ctx, "resume"); err != nil {
		return err
	}
	l.s.machine.resume()
	return nil
}

type snapshotting struct {
	cove.Sandbox

	s *sandbox
}

func (l snapshotting) Unwrap() cove.Sandbox { return l.Sandbox }

func (l snapshotting) Snapshot(ctx context.Context, name cove.ID) (cove.Bytes, error) {
	if err := l.s.ready(ctx, "snapshot"); err != nil {
		return 0, err
	}
	return l.s.provider.freeze(l.s.tree, name)
}

type forking struct {
	cove.Sandbox

	s *sandbox
}

func (l forking) Unwrap() cove.Sandbox { return l.Sandbox }

func (l forking) Fork(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	if err := l.s.ready(ctx, "fork"); err != nil {
		return nil, err
	}
	p := l.s.provider
	spec.Snapshot = "" // the files come from here
	spec, err := p.admit(ctx, "create.begin", id, spec)
	if err != nil {
		return nil, err
	}
	return p.create(id, spec, func(box *os.Root) (bool, error) {
		_, err := l.s.tree.copyOut(box, treeDir)
		return false, err
	})
}

type dialing struct {
	cove.Sandbox

	s *sandbox
}

func (l dialing) Unwrap() cove.Sandbox { return l.Sandbox }

func (l dialing) Dial(ctx context.Context, port int) (net.Conn, error) {
	if err := l.s.ready(ctx, "dial"); err != nil {
		return nil, err
	}
	if port < 1 || port > 65535 {
		return nil, cove.InvalidField("port", "%d is not a port; use 1 to 65535", port)
	}
	return l.s.machine.dial(ctx, port)
}

type preparing struct {
	*Provider

	next cove.Provider
}

func (l preparing) Unwrap() cove.Provider { return l.next }

type keeping struct {
	*Provider

	next cove.Provider
}

func (l keeping) Unwrap() cove.Provider { return l.next }
