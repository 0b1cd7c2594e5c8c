package history

import (
	"cmp"
	"slices"
)

// outage is a time in which a node may have been unable to renew its lease: faults of
// the node or of Redis that followed each other too closely to tell them apart.
type outage struct {
	start, end int64
	faults     []*Event
}

// outages returns those of a node, by time.
func (c *checker) outages(node string) []outage {
	var all []outage
	for _, f := range c.touching(node) {
		last := len(all) - 1
		if last < 0 || f.Start > c.healed(all[last].end) {
			all = append(all, outage{start: f.Start, end: f.End, faults: []*Event{f}})
			continue
		}
		all[last].end = max(all[last].end, f.End)
		all[last].faults = append(all[last].faults, f)
	}
	return all
}

// touching returns the faults that can keep a node from renewing its lease.
func (c *checker) touching(node string) []*Event {
	var all []*Event
	for _, f := range c.faults {
		if f.apart(node) || f.Node == node && f.Op != CutNodes {
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b *Event) int { return cmp.Compare(a.Start, b.Start) })
	return all
}

// healed is when a node surely has its lease again after a fault that ended then: what
// it asked meanwhile may first have to be given up.
func (c *checker) healed(end int64) int64 {
	if end > Never-c.Run.Lease {
		return Never
	}
	return end + c.Run.Lease/2
}

// mayBeLost reports whether a session can have been lost with its node by the time that
// somebody was told of its end.
func (c *checker) mayBeLost(s *session, told *Event) bool {
	return slices.ContainsFunc(c.outages(s.home), func(o outage) bool {
		return o.end > s.opened.Start && (o.kills(s, told.End) || c.runsOut(o, s.home, told.End) && !c.outlived(s, o, told))
	})
}

// kills reports whether the sandbox of a session ended by then.
func (o outage) kills(s *session, by int64) bool {
	return slices.ContainsFunc(o.faults, func(f *Event) bool { return f.Op == Power && f.Node == s.home && f.Start < by && !s.rests(f) })
}

// runsOut reports whether the lease of a node can have run out by then. It is renewed
// each quarter of its time, so three quarters are left at least when something happens,
// less a little for who is slow. Redis alone costs nothing, however long it is away: who
// comes back to it has a lease for that.
func (c *checker) runsOut(o outage, node string, by int64) bool {
	if min(o.end, by)-o.start < c.Run.Lease*6/10 {
		return false
	}
	alone := !slices.ContainsFunc(o.faults, func(f *Event) bool { return f.Op != Leave })
	return slices.ContainsFunc(o.faults, func(f *Event) bool {
		// An empty Redis does not know that a node had sessions, and a full disk costs no lease.
		if f.Op == EmptyStart || f.Op == DiskFull {
			return false
		}
		// Who leaves in order has its grace, unless it could not say so.
		return f.Node == node && f.Start < by && (f.Op != Leave || !alone || min(f.End, by)-f.Start > c.Run.Grace)
	})
}

// outlived reports whether a session answered when an outage was over, so that it was
// not lost in it.
func (c *checker) outlived(s *session, o outage, told *Event) bool {
	return slices.ContainsFunc(s.events, func(e *Event) bool { return e.Served() && e.Start > c.healed(o.end) && !c.untold(told, e) })
}
