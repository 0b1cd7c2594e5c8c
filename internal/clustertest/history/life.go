package history

import (
	"cmp"
	"slices"
)

// finality looks for sessions that answer after somebody was told of their end.
func (c *checker) finality() {
	c.each(func(s *session) {
		var told *Event
		for _, e := range s.events {
			if c.ended(e) && (told == nil || e.End < told.End) {
				told = e
			}
		}
		if told == nil {
			return
		}
		for _, e := range s.events {
			if e.Served() && e.Start > told.End && !c.untold(told, e) {
				c.breaks("finality", []*Event{told, e}, "session %s answered after its end was told", s.id)
			}
		}
	})
}

// untold reports whether what a node was told to have lost can be there again: no node
// has kept that it was told, where all of them ended and Redis lost it.
func (c *checker) untold(told, e *Event) bool {
	return told.Reason == nodeLost && slices.ContainsFunc(c.faults, func(f *Event) bool {
		return f.Op == EmptyCluster && f.End > told.Start && f.Start < e.Start
	})
}

// ended reports whether an answer is the end of a session for good.
func (c *checker) ended(e *Event) bool {
	switch {
	case e.Op == Close && e.Done():
		return true
	case !e.Gone():
		return false
	case e.Reason == noSession:
		return !c.settling(e)
	}
	return true
}

// settling reports whether Redis may have lacked sessions during e.
func (c *checker) settling(e *Event) bool {
	home := c.sessions[e.Session].home
	return slices.ContainsFunc(c.faults, func(f *Event) bool {
		if !f.Op.empties() || e.End <= f.Start {
			return false
		}
		// Nodes do not know the sessions of a node that was away when Redis became empty
		// until it is back.
		until := f.End
		for _, o := range c.outages(home) {
			if o.start < c.settled(f.End) && o.end > f.Start {
				until = max(until, o.end)
			}
		}
		return e.Start < c.settled(until)
	})
}

// unknown reports whether no other node can have known of a session for a while: Redis
// lost it, and its node was away for longer than nodes wait then. A server by itself does
// not know the user and thread of one that it was about to close when it lost its
// database.
func (c *checker) unknown(s *session) bool {
	closing := func(f *Event) bool {
		return slices.ContainsFunc(s.events, func(e *Event) bool { return e.Op == Close && e.Maybe() && e.Start < f.End })
	}
	if slices.ContainsFunc(c.faults, func(f *Event) bool { return f.Op == DatabaseLoss && closing(f) }) {
		return true
	}
	return slices.ContainsFunc(c.faults, func(f *Event) bool {
		return f.Op.empties() && slices.ContainsFunc(c.outages(s.home), func(o outage) bool {
			return o.start < c.settled(f.End) && o.end > f.Start+c.Run.Settle && (s.opened == nil || s.opened.Start < f.End)
		})
	})
}

// settled is when Redis has all sessions again after a fault that ended then.
func (c *checker) settled(end int64) int64 {
	if end > Never-c.Run.Settle {
		return Never
	}
	return end + c.Run.Settle
}

// reign is the time in which a session was surely alive.
type reign struct {
	session     string
	first, last *Event // one that ended in it, and one that began
}

func (r reign) from() int64 { return r.first.End }
func (r reign) to() int64   { return r.last.Start }

// holders looks for two sessions of a user and thread that were alive at once.
func (c *checker) holders() {
	keys, order := map[string][]reign{}, []string(nil)
	c.each(func(s *session) {
		r := reign{session: s.id}
		key := ""
		for _, e := range s.events {
			if !e.Served() {
				continue
			}
			if e.Key != "" {
				key = e.Key
			}
			if r.first == nil || e.End < r.first.End {
				r.first = e
			}
			if r.last == nil || e.Start > r.last.Start {
				r.last = e
			}
		}
		if key == "" || c.unknown(s) {
			return
		}
		if keys[key] == nil {
			order = append(order, key)
		}
		keys[key] = append(keys[key], r)
	})
	for _, key := range order {
		c.oneAtATime(key, keys[key])
	}
}

func (c *checker) oneAtATime(key string, all []reign) {
	slices.SortStableFunc(all, func(a, b reign) int { return cmp.Compare(a.from(), b.from()) })
	for i, a := range all {
		for _, b := range all[i+1:] {
			if b.from() < a.to() { // a was there before b was, and after it
				c.breaks("holder", []*Event{a.first, b.first, a.last}, "%s had the sessions %s and %s at once", key, a.session, b.session)
			}
		}
	}
}

// sandboxes looks for a second sandbox, or a second node, behind a session.
func (c *checker) sandboxes() {
	c.each(func(s *session) {
		var token, home, made *Event
		for _, e := range s.events {
			if e.Other != "" {
				c.breaks("sandbox", []*Event{e}, "session %s was asked, and %s answered", s.id, e.Other)
			}
			if !e.Served() {
				continue
			}
			switch {
			case e.Token == "":
			case token == nil:
				token = e
			case token.Token != e.Token && !s.mayStop(token.Start, e.End):
				c.breaks("sandbox", []*Event{token, e}, "two sandboxes answered for session %s", s.id)
			default:
				token = e
			}
			switch {
			case e.Home == "":
			case home == nil:
				home = e
			case home.Home != e.Home:
				c.breaks("sandbox", []*Event{home, e}, "session %s was on two nodes", s.id)
			}
			switch {
			case !e.Created:
			case made == nil:
				made = e
			default:
				c.breaks("sandbox", []*Event{made, e}, "session %s was created twice", s.id)
			}
		}
	})
}
