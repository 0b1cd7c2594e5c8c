package history

import "slices"

// once looks for programs that ran twice, that ran although the answer said to ask
// again, or whose effect is gone.
func (c *checker) once() {
	c.each(func(s *session) {
		sent := map[string]*Event{}
		for _, e := range s.events {
			if e.Op == Append {
				sent[e.Value] = e
			}
		}
		for _, e := range s.events {
			if e.Op == Tally && e.Served() {
				c.tally(s, e, sent)
			}
		}
	})
}

func (c *checker) tally(s *session, t *Event, sent map[string]*Event) {
	seen := map[string]bool{}
	for _, value := range t.Files {
		e := sent[value]
		switch {
		case e == nil || e.Unsent || e.Start > t.End:
			c.breaks("once", []*Event{t}, "the log of session %s has %q, which nothing added", s.id, value)
			return
		case seen[value]:
			c.breaks("once", []*Event{e, t}, "a program in session %s ran twice", s.id)
		case e.refused():
			c.breaks("once", []*Event{e, t}, "a program in session %s ran, and the answer said to ask again", s.id)
		}
		seen[value] = true
	}
	lost := func(e *Event) bool {
		return e.Op == Append && e.acked() && e.End < t.Start && !seen[e.Value]
	}
	if i := slices.IndexFunc(s.events, lost); i >= 0 {
		c.breaks("once", []*Event{s.events[i], t}, "what a program in session %s added is gone", s.id)
	}
}
