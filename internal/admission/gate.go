// Package admission decides who gets in when there is room for some and not
// for all: a bounded number of sessions and bytes of memory, a bounded queue,
// and turns that go round the tenants so that none can crowd out another.
//
// It counts what it is told and nothing else: it must not know sessions,
// providers or stores.
package admission

import (
	"context"
	"sync"

	"github.com/cove-sandbox/cove"
)

// Claim is what one caller wants room for.
type Claim struct {
	Tenant string
	Memory cove.Bytes
	Quota  cove.Bounds // the tenant's own bounds, as they are now
	Aside  bool        // it is no session: only its memory counts
}

// Config is the room there is. Zero Sessions or Memory means no bound; zero
// Queue means that nobody can wait.
type Config struct {
	Sessions int
	Memory   cove.Bytes
	Queue    int
}

// Gate hands out room. Methods are safe for concurrent use.
type Gate struct {
	cfg Config

	mu      sync.Mutex
	used    amount             // guarded by mu
	tenants map[string]*amount // guarded by mu; only those that use something
	queues  map[string][]*waiter
	ring    []string // tenants that wait, in the order of their turns
	waiting int
}

type amount struct {
	sessions int
	memory   cove.Bytes
}

// Ticket is room that somebody has. Leave gives it back.
type Ticket struct {
	gate  *Gate
	claim Claim
	left  bool // guarded by gate.mu
}

// waiter is a caller in the queue. granted is closed once ticket is set;
// moved is told when its place may have changed.
type waiter struct {
	claim   Claim
	ticket  *Ticket
	granted chan struct{}
	moved   chan struct{}
}

// New returns a Gate with all its room free.
func New(cfg Config) *Gate {
	return &Gate{cfg: cfg, tenants: map[string]*amount{}, queues: map[string][]*waiter{}}
}

// Try takes room without waiting. It never passes somebody who waits.
func (g *Gate) Try(c Claim) (*Ticket, error) {
	if err := g.possible(c); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	w := newWaiter(c)
	g.push(w)
	g.dispatch()
	if w.ticket != nil {
		return w.ticket, nil
	}
	g.drop(w)
	return nil, g.full(c)
}

// Wait takes room as soon as it is this caller's turn. told, if not nil, gets
// the place in the queue whenever it changes; 1 is next.
func (g *Gate) Wait(ctx context.Context, c Claim, told func(position int)) (*Ticket, error) {
	if err := g.possible(c); err != nil {
		return nil, err
	}
	w := newWaiter(c)
	g.mu.Lock()
	g.push(w)
	g.dispatch()
	if w.ticket == nil && g.waiting > g.cfg.Queue {
		g.drop(w)
		g.mu.Unlock()
		return nil, cove.Errorf(cove.Exhausted, "%d callers wait already; try again later", g.cfg.Queue).
			Reason(cove.ReasonQueueFull).With("retry_after", retryAfter)
	}
	g.mu.Unlock()
	return g.await(ctx, w, told)
}

// retryAfter is how many seconds a refused caller should stay away: long
// enough not to hammer, short enough that room is not idle.
const retryAfter = 5

func (g *Gate) await(ctx context.Context, w *waiter, told func(int)) (*Ticket, error) {
	last := 0
	for {
		select {
		case <-w.granted:
			return w.ticket, nil
		default:
		}
		if at := g.position(w); told != nil && at != last && at > 0 {
			told(at)
			last = at
		}
		select {
		case <-w.granted:
			return w.ticket, nil
		case <-w.moved:
		case <-ctx.Done():
			return nil, g.giveUp(ctx, w)
		}
	}
}

// giveUp takes w out of the queue. A ticket that was granted in the same
// moment goes to the next.
func (g *Gate) giveUp(ctx context.Context, w *waiter) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.ticket != nil {
		g.free(w.ticket)
	} else {
		g.drop(w)
	}
	g.dispatch()
	return ctx.Err()
}

// Leave gives the room back. It is idempotent, and a nil Ticket has none.
func (t *Ticket) Leave() {
	if t == nil {
		return
	}
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	t.gate.free(t)
	t.gate.dispatch()
}

// Exchange gives back the room of old and takes room for c in one step, past
// the queue: the caller pays for its turn with what it gives up. When c does
// not fit even so, old are given back and the error says what is short.
func (g *Gate) Exchange(old []*Ticket, c Claim) (*Ticket, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range old {
		g.free(t)
	}
	defer g.dispatch()
	if g.fits(c) && g.fitsQuota(c) {
		return g.grant(c), nil
	}
	return nil, g.full(c)
}

// Waiting returns what the next of each tenant's waiting callers wants.
func (g *Gate) Waiting() []Claim {
	g.mu.Lock()
	defer g.mu.Unlock()
	var heads []Claim
	for _, tenant := range g.ring {
		heads = append(heads, g.queues[tenant][0].claim)
	}
	return heads
}

// Serve is Exchange for a tenant's next waiting caller: it gets in, past other
// tenants, with what its own tenant gives up. What is left goes round as usual.
func (g *Gate) Serve(old []*Ticket, tenant string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range old {
		g.free(t)
	}
	if q := g.queues[tenant]; len(q) > 0 && g.fits(q[0].claim) && g.fitsQuota(q[0].claim) {
		g.admit(q[0])
	}
	g.dispatch()
}

// Shortfall says how many sessions and bytes must go, of this tenant's own,
// before c fits; zero for both means it fits now, or is behind others who wait.
func (g *Gate) Shortfall(c Claim) (sessions int, memory cove.Bytes) {
	g.mu.Lock()
	defer g.mu.Unlock()
	mine := g.of(c.Tenant)
	for _, room := range []struct {
		used amount
		max  int
		mem  cove.Bytes
	}{{g.used, g.cfg.Sessions, g.cfg.Memory}, {mine, c.Quota.Sessions, c.Quota.Memory}} {
		if room.max > 0 {
			sessions = max(sessions, room.used.sessions+1-room.max)
		}
		if room.mem > 0 {
			memory = max(memory, room.used.memory+c.Memory-room.mem)
		}
	}
	return sessions, memory
}

// Used returns what is taken in all, and how many callers wait.
func (g *Gate) Used() (sessions int, memory cove.Bytes, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.used.sessions, g.used.memory, g.waiting
}

// Of returns what one tenant has taken.
func (g *Gate) Of(tenant string) (sessions int, memory cove.Bytes) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.of(tenant)
	return a.sessions, a.memory
}

// Admit takes room without asking, for a session that is alive already when
// the engine starts. It may overfill the gate.
func (g *Gate) Admit(c Claim) *Ticket {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.grant(c)
}
