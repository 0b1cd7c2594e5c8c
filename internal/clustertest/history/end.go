package history

import "slices"

// ends holds every session that somebody got against what was said of it when all
// was healed, and every end that was told against what had happened by then.
func (c *checker) ends() {
	c.each(func(s *session) {
		if s.opened == nil {
			return
		}
		for _, e := range s.events {
			if e.Gone() {
				c.trueReason(s, e)
			}
		}
		c.end(s)
	})
}

func (c *checker) end(s *session) {
	var alive, gone []*Event
	asked := map[string]bool{}
	for _, e := range s.events {
		switch {
		case e.Client != Final:
			continue
		case e.Served():
			alive = append(alive, e)
		case e.Gone():
			gone = append(gone, e)
		default:
			c.breaks("end", []*Event{e}, "session %s is neither there nor gone, and all is healed", s.id)
		}
		asked[e.Node] = true
	}
	for _, node := range c.Run.Nodes {
		if !asked[node] {
			c.breaks("end", []*Event{s.opened}, "nobody asked %s for session %s in the end", node, s.id)
		}
	}
	if len(alive) > 0 && len(gone) > 0 {
		c.breaks("end", []*Event{alive[0], gone[0]}, "session %s is there for one and gone for another", s.id)
	}
	if len(alive) > 0 {
		c.filesRead(s, alive)
	}
}

// filesRead looks for files that were surely written and that nobody read in the
// end: what was read is checked as any other read.
func (c *checker) filesRead(s *session, alive []*Event) {
	for _, w := range s.events {
		read := func(e *Event) bool { return e.Op == Read && e.File == w.File }
		if w.Op.writes() && w.acked() && !slices.ContainsFunc(alive, read) {
			c.breaks("end", []*Event{w}, "nobody read %s of session %s in the end", w.File, s.id)
			return
		}
	}
}

// trueReason looks for what had to happen before a session can have ended so.
func (c *checker) trueReason(s *session, told *Event) {
	closed := func(e *Event) bool { return e.Op == Close && !e.Unsent && e.Start < told.End }
	ended, happened := slices.ContainsFunc(s.events, closed), false
	switch told.Reason {
	case sessionClosed:
		happened = ended
	case nodeLost:
		happened = c.mayBeLost(s, told)
	case noSession: // Redis forgets what has ended; what has not is told to it again
		happened = c.forgotten(s, told) && (ended || c.settling(told) || c.mayBeLost(s, told))
	}
	if !happened {
		c.breaks("end", []*Event{s.opened, told}, "session %s is said to be gone, %s, and nothing that happened makes it so", s.id, told.Reason)
	}
}

// forgotten reports whether Redis or the database lost what it knew between the open of a session and
// an answer.
func (c *checker) forgotten(s *session, told *Event) bool {
	return slices.ContainsFunc(c.faults, func(f *Event) bool {
		return (f.Op.empties() || f.Op == DatabaseLoss) && f.Start < told.End && f.End > s.opened.Start
	})
}
