package cluster

import (
	"context"
	"crypto/tls"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
)

// Config is what makes a node. All but Region, Grace, Logger and the functions must be set.
type Config struct {
	Directory cove.Directory
	Node      string
	Region    string   // of this cluster; "" where there is one
	Regions   []Region // other clusters, and what belongs there
	Address   string   // of the door for other nodes
	Version   string
	Secret    string        // that all nodes know, of 32 characters or more
	Lease     time.Duration // as the directory has it
	Grace     time.Duration // how long the node may be away when it says so; 0: it is gone at once
	// Changed is told of keys and tenants that any node changed. nil: nobody is.
	Changed func(cove.Notice)
	// Announce is called before an engine is opened with what the directory has of this
	// node: it puts there what a directory that was begun anew has lost. nil: nothing.
	Announce func(ctx context.Context) error
	// Renewed is called before the engine compares its sessions with a directory that was
	// begun anew, or after this node's lease had run out. It may be called more than once,
	// and is called again after an error. nil: nothing.
	Renewed func(ctx context.Context) error
	Logger  *slog.Logger
}

// Engine is the part of an engine that a node needs.
type Engine interface {
	As(p cove.Principal) cove.Platform
	Holds(id cove.ID) bool
	Self(ctx context.Context) cove.Node
	Reconcile(ctx context.Context) (lost int, err error)
	Cordon(on bool)
}

// Member is this node in its cluster. It is safe for concurrent use.
type Member struct {
	cfg      Config
	identity identity
	peers    *peers
	known    *memory
	fresh    *fresh
	regions  *regions
	began    time.Time

	engine    atomic.Pointer[engineBox]
	nodes     atomic.Pointer[[]cove.Node]
	good      atomic.Int64 // until when, counted from began, the lease is sure
	connected atomic.Bool  // the last beat was answered
	serving   atomic.Bool  // what this node has agrees with the directory
	comparing atomic.Bool  // somebody is finding out whether it does
	wanted    atomic.Bool  // somebody asked for the nodes since they were looked at

	mu     sync.Mutex
	pulse  cove.Pulse // guarded by mu
	agreed bool       // guarded by mu; since the last time that something was new

	kick chan struct{}
	stop context.CancelFunc
	done sync.WaitGroup
}

// engineBox makes an interface fit for an atomic pointer.
type engineBox struct{ Engine }

// Join takes the lease of a node and keeps it until Leave. It waits until a directory
// that was begun anew has been told by others what they have.
func Join(ctx context.Context, cfg Config) (*Member, error) {
	id, err := newIdentity(cfg.Secret, cfg.Node)
	if err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Member{cfg: cfg, identity: id, known: newMemory(maxKnown), fresh: newFresh(), began: time.Now(), kick: make(chan struct{}, 1)}
	m.peers, m.regions = newPeers(id, cfg.Lease), newRegions(cfg.Regions, cfg.Region)
	if err := m.beat(ctx); err != nil {
		return nil, err
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.stop = stop
	m.done.Go(func() { m.keep(life) })
	m.done.Go(func() { m.follow(life) })
	if err := m.settle(ctx); err != nil {
		m.end(ctx, 0)
		return nil, err
	}
	return m, nil
}

// settle says what this node has, and waits until a directory that was begun anew has
// been told by all others. If it is begun anew meanwhile, it does so again.
func (m *Member) settle(ctx context.Context) error {
	for told := ""; ; {
		m.mu.Lock()
		epoch := m.pulse.Epoch
		m.mu.Unlock()
		if epoch == told {
			return nil
		}
		if m.cfg.Announce != nil {
			if err := m.announce(ctx); err != nil {
				return err
			}
		}
		told = epoch
		wait := m.settling()
		if wait <= 0 {
			continue
		}
		m.cfg.Logger.InfoContext(ctx, "the directory is new: waiting for other nodes to say what they have", slog.Duration("for", wait))
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// announce waits for a directory that is away: this node has its lease, and other nodes
// would give up its sessions if it ended and came back later.
func (m *Member) announce(ctx context.Context) error {
	for away := false; ; away = true {
		err := m.cfg.Announce(ctx)
		if !isAway(err) {
			return err
		}
		if !away {
			m.cfg.Logger.WarnContext(ctx, "the directory cannot be told what this node has; it is tried again", slog.Any("error", err))
		}
		if err := pause(ctx, m.cfg.Lease/retryPerLease); err != nil {
			return err
		}
	}
}

// isAway reports whether a directory did not answer, which passes.
func isAway(err error) bool {
	code := cove.CodeOf(err)
	return code == cove.Unavailable || code == cove.Timeout
}

// Serve lets callers in, now that there is an engine. When it returns, other nodes
// can know of this one, and this one knows of them.
func (m *Member) Serve(ctx context.Context, e Engine) error {
	m.engine.Store(&engineBox{e})
	m.serving.Store(true)
	if err := m.beat(ctx); err != nil {
		if !isAway(err) {
			return err
		}
		m.cfg.Logger.WarnContext(ctx, "the directory cannot be told that this node serves; the next beat tells it", slog.Any("error", err))
		return nil
	}
	m.look(ctx, false)
	return nil
}

// Leave gives the lease back, for a grace in which the node may be back. Calls that
// are under way must be over.
func (m *Member) Leave(ctx context.Context) { m.end(ctx, m.cfg.Grace) }

func (m *Member) end(ctx context.Context, grace time.Duration) {
	m.serving.Store(false)
	m.stop()
	m.done.Wait()
	m.peers.close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.cfg.Lease/2)
	defer cancel()
	if err := m.cfg.Directory.Leave(ctx, grace); err != nil {
		m.cfg.Logger.WarnContext(ctx, "leave the cluster; its lease runs out by itself", slog.Any("error", err))
	}
}

// Door is the TLS configuration of the door for other nodes.
func (m *Member) Door() *tls.Config { return m.identity.door() }

// Connected reports whether the directory answered when it was last asked.
func (m *Member) Connected() bool { return m.connected.Load() }

// now is the time since began, which no change of the clock moves.
func (m *Member) now() time.Duration { return time.Since(m.began) }

// Serving reports why this node cannot answer for its sessions now, or nil.
func (m *Member) Serving() error { return m.mayServe() }

// mayServe reports why this node cannot answer for its sessions now.
func (m *Member) mayServe() error {
	if m.engine.Load() == nil || !m.serving.Load() || int64(m.now()) >= m.good.Load() {
		return cove.Errorf(cove.Unavailable, "this node is cut off from the others and has lost its lease").Reason(cove.ReasonFenced).
			With("retry_after", retrySoon).Remedy("try again in a moment, or ask another node")
	}
	return nil
}

// mayBegin reports why this node cannot take anything new now.
func (m *Member) mayBegin() error {
	if err := m.mayServe(); err != nil {
		return err
	}
	if !m.connected.Load() {
		return noDirectory("this node cannot reach the directory that all nodes share, so nothing new is begun")
	}
	return nil
}

// retrySoon is how many seconds callers are told to wait for what mends itself.
const retrySoon = 2

func noDirectory(what string) error {
	return cove.Errorf(cove.Unavailable, "%s", what).Reason(cove.ReasonNoDirectory).With("retry_after", retrySoon).
		Remedy("try again in a moment; the operator sees to REDIS_URL")
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
