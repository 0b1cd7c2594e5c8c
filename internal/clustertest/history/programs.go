package history

// printed is how long a program may take to print its first line.
const printed = int64(10e9)

// programs looks for background programs that ended, or whose output is gone, while
// their session had its sandbox.
func (c *checker) programs() {
	c.each(func(s *session) {
		began := map[string]*Event{}
		for _, e := range s.events {
			switch {
			case e.Op == Begin && e.acked():
				began[e.Program] = e
			case e.Op == Look && e.acked() && began[e.Program] != nil:
				c.look(s, began[e.Program], e)
			}
		}
	})
}

func (c *checker) look(s *session, began, e *Event) {
	if s.mayStop(began.Start, e.End) {
		return
	}
	switch {
	case e.Absent || !e.Running:
		c.breaks("programs", []*Event{began, e}, "a background program of session %s runs no more, and nothing ended it", s.id)
	case e.Value != began.Value && (e.Value != "" || e.Start > began.End+printed):
		c.breaks("programs", []*Event{began, e}, "the output of a background program of session %s is not what it printed", s.id)
	}
}
