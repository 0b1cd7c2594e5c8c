package cluster

import (
	"context"
	"log/slog"
	"time"

	"github.com/cove-sandbox/cove"
)

// Parts of a lease.
const (
	beatsPerLease  = 4  // how often it is renewed
	retryPerLease  = 20 // how often that is tried while it fails
	marginPerLease = 10 // what is left of it, for clocks that differ
)

// keep renews the lease until ctx ends.
func (m *Member) keep(ctx context.Context) {
	var last error
	for n := 1; ; n++ {
		wait := m.cfg.Lease / beatsPerLease
		if last != nil {
			wait = m.cfg.Lease / retryPerLease
		}
		select {
		case <-ctx.Done():
			return
		case <-m.kick:
		case <-time.After(wait):
		}
		err := m.beat(ctx)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err != nil && last == nil:
			m.cfg.Logger.WarnContext(ctx, "the directory cannot be told that this node lives", slog.Any("error", err))
		case err == nil && last != nil:
			m.cfg.Logger.InfoContext(ctx, "the directory answers again")
		}
		// All nodes that look at each other all the time would be most of what the
		// directory does: who is not asked for anything looks now and then.
		if last = err; err == nil && (m.wanted.Swap(false) || n%beatsPerLease == 0) {
			m.look(ctx, n%beatsPerLease == 0)
		}
	}
}

// beatSoon has the node say now how it is.
func (m *Member) beatSoon() {
	select {
	case m.kick <- struct{}{}:
	default: // it will
	}
}

// beat renews the lease once and sees to what is new.
func (m *Member) beat(ctx context.Context) error {
	began := m.now()
	call, cancel := context.WithTimeout(ctx, m.cfg.Lease/3)
	defer cancel()
	pulse, err := m.cfg.Directory.Beat(call, m.self(call))
	if err != nil {
		m.connected.Store(false)
		return err
	}
	m.mu.Lock()
	was := m.pulse
	// In one epoch a token changes only when the lease ran out. A new directory may have
	// lost it; then it counts whether this node went on without one.
	lapsed := was.Token != 0 && was.Token != pulse.Token && (was.Epoch == pulse.Epoch || int64(m.now()) >= m.good.Load())
	renewed := was.Token != 0 && (was.Token != pulse.Token || was.Epoch != pulse.Epoch)
	m.pulse = pulse
	m.agreed = m.agreed && !renewed && m.connected.Load()
	first := was.Token == 0
	if first {
		m.agreed = true // the engine begins with what the directory has
	}
	agreed := m.agreed
	if lapsed {
		m.serving.Store(false) // before the lease counts again
	}
	m.mu.Unlock()
	if lapsed {
		m.known.clear()
	}
	m.good.Store(int64(began + m.cfg.Lease - m.cfg.Lease/marginPerLease))
	m.connected.Store(true)
	if e := m.engine.Load(); e != nil {
		e.Cordon(pulse.Cordoned)
		if !agreed {
			m.reconcile(ctx)
		}
	}
	return nil
}

// self is what this node says of itself. Until it serves, it is away.
func (m *Member) self(ctx context.Context) cove.Node {
	n := cove.Node{State: cove.NodeAway, StartedAt: m.began}
	if e := m.engine.Load(); e != nil {
		n = e.Self(ctx) // one whose providers are not ready says so, and answers for what it has
		if n.State = cove.NodeReady; m.cordoned() {
			n.State = cove.NodeCordoned // a directory that lost all learns it from here
		}
	}
	n.ID, n.Region, n.Address, n.Version = m.cfg.Node, m.cfg.Region, m.cfg.Address, m.cfg.Version
	return n
}

// cordoned reports whether the directory said that this node is to be given nothing new.
func (m *Member) cordoned() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pulse.Cordoned
}

// settling is how long the directory may still lack what nodes know.
func (m *Member) settling() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pulse.Settling
}

// reconcile makes what this node has and what the directory knows agree, in the
// background: leases are renewed meanwhile. While another one goes on there is
// nothing to do, since a beat comes after it. A node whose lease had run out waits
// until others had time to say which sessions they gave up, and looks again.
func (m *Member) reconcile(ctx context.Context) {
	if !m.comparing.CompareAndSwap(false, true) {
		return
	}
	m.mu.Lock()
	pulse := m.pulse
	m.mu.Unlock()
	m.done.Go(func() {
		defer m.comparing.Store(false)
		if err := m.compare(ctx, pulse); err != nil {
			m.cfg.Logger.WarnContext(ctx, "compare sessions with the directory; the next beat tries again", slog.Any("error", err))
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.agreed = m.pulse.Token == pulse.Token && m.pulse.Epoch == pulse.Epoch; m.agreed {
			m.serving.Store(true) // with the lock: whoever finds out that a lease lapsed has the last word
		}
	})
}

// compare has the engine look, and once more when a new directory has settled.
func (m *Member) compare(ctx context.Context, pulse cove.Pulse) error {
	e, lapsed := m.engine.Load(), !m.serving.Load()
	if m.cfg.Renewed != nil { // first: as long as keys are missing, callers are refused
		if err := m.cfg.Renewed(ctx); err != nil {
			return err
		}
	}
	lost, err := e.Reconcile(ctx)
	if err == nil && pulse.Settling > 0 && lapsed {
		if err = pause(ctx, pulse.Settling); err == nil {
			var more int
			more, err = e.Reconcile(ctx)
			lost += more
		}
	}
	if lost > 0 {
		m.cfg.Logger.WarnContext(ctx, "sessions were lost while this node was cut off", slog.Int("sessions", lost))
	}
	return err
}

// look finds out how the others are. Now and then it ends what nodes left that are
// gone.
func (m *Member) look(ctx context.Context, sweep bool) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Lease/3)
	defer cancel()
	nodes, err := m.cfg.Directory.Members(ctx)
	if err != nil {
		m.cfg.Logger.DebugContext(ctx, "list nodes; the next beat tries again", slog.Any("error", err))
		return
	}
	m.nodes.Store(&nodes)
	m.peers.keep(nodes)
	if !sweep {
		return
	}
	n, err := m.cfg.Directory.Sweep(ctx)
	if err != nil {
		m.cfg.Logger.DebugContext(ctx, "end sessions of nodes that are gone; tried again later", slog.Any("error", err))
	}
	if n > 0 {
		m.cfg.Logger.WarnContext(ctx, "sessions of nodes that are gone are lost", slog.Int64("sessions", n))
	}
}

// follow hands on what others change.
func (m *Member) follow(ctx context.Context) {
	changed := m.cfg.Changed
	if changed == nil {
		return
	}
	for ctx.Err() == nil {
		err := m.cfg.Directory.Follow(ctx, changed)
		if ctx.Err() != nil {
			return
		}
		m.cfg.Logger.DebugContext(ctx, "follow changes; tried again", slog.Any("error", err))
		_ = pause(ctx, m.cfg.Lease/retryPerLease) // the loop looks at ctx
	}
}

// members returns the nodes as they were when the directory was last asked.
func (m *Member) members() []cove.Node {
	m.wanted.Store(true)
	if list := m.nodes.Load(); list != nil {
		return *list
	}
	return nil
}
