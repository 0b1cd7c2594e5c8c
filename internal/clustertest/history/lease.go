package history

import (
	"net/http"
	"slices"
)

// apart reports whether a fault keeps a node from Redis.
func (e *Event) apart(node string) bool {
	switch e.Op { //nolint:exhaustive // the others leave the way to Redis alone
	case CutRedis:
		return e.Node == node
	case RedisRestart, RedisLoss, EmptyStart, EmptyCluster:
		return true
	}
	return false
}

// leases looks for nodes that answered for sessions without a lease, or made some
// that they could not write down.
func (c *checker) leases() {
	for _, f := range c.faults {
		if f.Op != CutRedis && f.Op != RedisRestart && f.Op != RedisLoss || f.Applied == 0 || f.Healing == 0 {
			continue
		}
		for _, e := range c.Events {
			if e.Start < f.Applied || e.End > f.Healing || !e.Served() {
				continue
			}
			// Whoever is asked may pass it on: who has the session answers.
			if home := c.sessions[e.Session].home; e.Start > f.Applied+c.Run.Lease && f.apart(home) {
				c.breaks("lease", []*Event{f, e}, "%s answered for session %s without a lease", home, e.Session)
			}
			if e.Op == Open && e.Created && f.apart(e.Home) {
				c.breaks("lease", []*Event{f, e}, "%s made session %s while it could write nothing down", e.Home, e.Session)
			}
		}
	}
}

// losses looks for nodes that know better and do not say that a session is gone.
func (c *checker) losses() {
	for _, f := range c.faults {
		if f.Op != Crash && f.Op != Power && f.Op != Freeze || f.Applied == 0 || f.Healing == 0 {
			continue
		}
		over := f.Applied + c.Run.Lease + c.Run.Lease/2 // the rest is for who is slow
		for _, e := range c.Events {
			if e.Start < over || e.End > f.Healing || !e.Answered() || e.Session == "" || e.Gone() || e.Op.IsFault() {
				continue
			}
			if s := c.sessions[e.Session]; s.home == f.Node && c.sound(e.Node, e) {
				c.breaks("loss", []*Event{f, e}, "the lease of %s is over, and %s does not say that session %s is lost", f.Node, e.Node, s.id)
			}
		}
	}
}

// unpowered looks for sessions that answer after the power of their node failed while
// they had a sandbox.
func (c *checker) unpowered() {
	for _, f := range c.faults {
		if f.Op != Power || f.Applied == 0 {
			continue
		}
		c.each(func(s *session) {
			before := slices.IndexFunc(s.events, func(e *Event) bool { return e.ran() && e.End < f.Start && !s.mayStop(e.Start, f.Applied) })
			if s.home != f.Node || before < 0 {
				return
			}
			for _, e := range s.events {
				if e.Served() && e.Start > f.Applied {
					c.breaks("loss", []*Event{s.events[before], f, e}, "session %s answered after %s lost power", s.id, f.Node)
				}
			}
		})
	}
}

// sound reports whether nothing was done to a node or to Redis during an event, and
// for as long before as it may take until all is settled.
func (c *checker) sound(node string, e *Event) bool {
	return !slices.ContainsFunc(c.faults, func(f *Event) bool {
		touches := f.Node == node || f.Peer == node || f.Op == RedisRestart || f.Op.empties()
		return touches && f.Start < e.End && c.settled(f.End) > e.Start
	})
}

// fair are the statuses that a good request may get from a cluster in trouble.
var fair = []int{http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// onlyNodes is a reason that nodes tell each other.
const onlyNodes = "elsewhere"

// answers looks for answers that no good request should get.
func (c *checker) answers() {
	whole := Never // until then
	for _, f := range c.faults {
		whole = min(whole, f.Start)
	}
	for _, e := range c.Events {
		switch {
		case e.Done() && e.Error != "" && !c.cutShort(e):
			c.breaks("answers", []*Event{e}, "it was done, and what came of it is no good")
		case e.Op.IsFault() || e.Done() || e.Absent:
		case e.End < whole && !e.Gone() && !c.owed(e):
			c.breaks("answers", []*Event{e}, "nothing was broken yet, and this was not done")
		case !e.Answered():
		case e.Reason == onlyNodes:
			c.breaks("answers", []*Event{e}, "a client was told what nodes tell each other")
		case e.Status == http.StatusInsufficientStorage && c.during(DiskFull, e):
		case !slices.Contains(fair, e.Status):
			c.breaks("answers", []*Event{e}, "a good request got status %d", e.Status)
		case e.Status == notFound && !e.Gone():
			c.breaks("answers", []*Event{e}, "a session is not found, and nobody says why")
		}
	}
}

// owed reports whether an answer that refuses something is what clients brought about:
// the session is stopped, or the tenant has as many as it may.
func (c *checker) owed(e *Event) bool {
	s := c.sessions[e.Session]
	return e.Status == http.StatusConflict && s != nil && s.mayStop(ever, e.End) || e.Status == http.StatusTooManyRequests && c.Run.Bound > 0
}

// during reports whether a fault was there, or had gone only just before an event.
func (c *checker) during(op Op, e *Event) bool {
	return slices.ContainsFunc(c.faults, func(f *Event) bool { return f.Op == op && f.Start < e.End && c.settled(f.End) > e.Start })
}

// cutShort reports whether a program may have ended with its sandbox, or with the node
// that has it.
func (c *checker) cutShort(e *Event) bool {
	s := c.sessions[e.Session]
	if !e.Op.runs() || s == nil {
		return false
	}
	closing := func(x *Event) bool { return x.Op == Close && !x.Unsent && x.Start < e.End }
	return slices.ContainsFunc(s.events, closing) || s.mayStop(e.Start, e.End) || !c.sound(s.home, e)
}
