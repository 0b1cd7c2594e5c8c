package admission

import (
	"slices"

	"github.com/cove-sandbox/cove"
)

// All functions below are called with Gate.mu held, but for possible, position
// and newWaiter.

func newWaiter(c Claim) *waiter {
	return &waiter{claim: c, granted: make(chan struct{}), moved: make(chan struct{}, 1)}
}

// possible reports a claim for which there will never be room.
func (g *Gate) possible(c Claim) error {
	if g.cfg.Memory > 0 && c.Memory > g.cfg.Memory {
		return cove.Errorf(cove.Exhausted, "the session wants %s of memory and there are %s in all; ask for less", c.Memory, g.cfg.Memory).
			Reason(cove.ReasonCapacity)
	}
	if c.Quota.Memory > 0 && c.Memory > c.Quota.Memory {
		return cove.Errorf(cove.Exhausted, "the session wants %s of memory and the tenant may have %s in all; ask for less", c.Memory, c.Quota.Memory).
			Reason(cove.ReasonTenantQuota)
	}
	return nil
}

// full says what there is no room for.
func (g *Gate) full(c Claim) error {
	if !g.fitsQuota(c) {
		return cove.Errorf(cove.Exhausted, "the tenant has as many sessions or as much memory as it may; close one or try again later").
			Reason(cove.ReasonTenantQuota).With("retry_after", retryAfter)
	}
	return cove.Errorf(cove.Exhausted, "there is no room for another session (%d sessions, %s of memory in use); close one, wait with on_full, or try again later",
		g.used.sessions, g.used.memory).Reason(cove.ReasonCapacity).With("retry_after", retryAfter)
}

func (g *Gate) fits(c Claim) bool {
	return (c.Aside || g.cfg.Sessions == 0 || g.used.sessions < g.cfg.Sessions) &&
		(g.cfg.Memory == 0 || g.used.memory+c.Memory <= g.cfg.Memory)
}

func (g *Gate) fitsQuota(c Claim) bool {
	mine := g.of(c.Tenant)
	return (c.Aside || c.Quota.Sessions == 0 || mine.sessions < c.Quota.Sessions) &&
		(c.Quota.Memory == 0 || mine.memory+c.Memory <= c.Quota.Memory)
}

func (g *Gate) of(tenant string) amount {
	if a, ok := g.tenants[tenant]; ok {
		return *a
	}
	return amount{}
}

// sessions is how many sessions a claim counts for.
func (c Claim) sessions() int {
	if c.Aside {
		return 0
	}
	return 1
}

func (g *Gate) grant(c Claim) *Ticket {
	a, ok := g.tenants[c.Tenant]
	if !ok {
		a = &amount{}
		g.tenants[c.Tenant] = a
	}
	for _, sum := range []*amount{&g.used, a} {
		sum.sessions += c.sessions()
		sum.memory += c.Memory
	}
	return &Ticket{gate: g, claim: c}
}

func (g *Gate) free(t *Ticket) {
	if t == nil || t.left {
		return
	}
	t.left = true
	a := g.tenants[t.claim.Tenant]
	for _, sum := range []*amount{&g.used, a} {
		sum.sessions -= t.claim.sessions()
		sum.memory -= t.claim.Memory
	}
	if *a == (amount{}) {
		delete(g.tenants, t.claim.Tenant)
	}
}

func (g *Gate) push(w *waiter) {
	t := w.claim.Tenant
	if len(g.queues[t]) == 0 {
		g.ring = append(g.ring, t)
	}
	g.queues[t] = append(g.queues[t], w)
	g.waiting++
}

func (g *Gate) drop(w *waiter) {
	t := w.claim.Tenant
	i := slices.Index(g.queues[t], w)
	if i < 0 {
		return
	}
	g.queues[t] = slices.Delete(g.queues[t], i, i+1)
	g.waiting--
	if len(g.queues[t]) == 0 {
		delete(g.queues, t)
		g.ring = slices.DeleteFunc(g.ring, func(name string) bool { return name == t })
	}
}

// dispatch grants room to those whose turn it is. Tenants take turns. A tenant
// at its own quota is passed over; a claim that is too large for the room left
// holds up all, or small ones would keep it out forever.
func (g *Gate) dispatch() {
	for passed := 0; passed < len(g.ring); {
		w := g.queues[g.ring[0]][0]
		if !g.fitsQuota(w.claim) {
			g.ring = append(g.ring[1:], g.ring[0])
			passed++
			continue
		}
		if !g.fits(w.claim) {
			break
		}
		passed = 0
		tenant := g.ring[0]
		g.admit(w)
		if len(g.queues[tenant]) > 0 {
			g.ring = append(g.ring[1:], tenant)
		}
	}
	g.notify()
}

// admit lets a waiting caller in.
func (g *Gate) admit(w *waiter) {
	w.ticket = g.grant(w.claim)
	g.drop(w)
	close(w.granted)
}

func (g *Gate) notify() {
	for _, q := range g.queues {
		for _, w := range q {
			select {
			case w.moved <- struct{}{}:
			default:
			}
		}
	}
}

// position is w's place if all claims were alike: everybody gets one turn
// before anybody gets two. 0 means that it no longer waits.
func (g *Gate) position(w *waiter) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	mine := slices.Index(g.queues[w.claim.Tenant], w)
	if mine < 0 {
		return 0
	}
	at, seen := mine+1, false
	for _, tenant := range g.ring {
		if tenant == w.claim.Tenant {
			seen = true
			continue
		}
		before := mine
		if !seen {
			before++
		}
		at += min(len(g.queues[tenant]), before)
	}
	return at
}
