package history

import "slices"

// contexts checks the variable of each context. Only one client uses a context, one
// call after the other, but a call without an answer may still be done later.
func (c *checker) contexts() {
	c.each(func(s *session) {
		all := map[string]*memory{}
		for _, e := range s.events {
			if e.Context == "" || e.Unsent || e.refused() {
				continue
			}
			m := all[e.Context]
			if m == nil {
				m = &memory{checker: c, session: s}
				all[e.Context] = m
			}
			m.take(e)
		}
	})
}

// memory is what is known of a context.
type memory struct {
	*checker

	session *session
	last    *Event   // answer of the interpreter
	set     *Event   // the value that it has; nil: none since it was started
	unsure  []*Event // values that it may have been given, or may yet be
	doubt   bool     // an answer is missing that may have said that the interpreter is new
}

func (m *memory) take(e *Event) {
	if e.Fresh || e.Absent {
		m.restarted(e)
	}
	switch {
	case !e.acked() && !e.Absent:
		m.doubt = true
		if e.Op == Set {
			m.unsure = append(m.unsure, e)
		}
		return
	case e.Op == Set:
		m.set, m.doubt = e, false
	case e.Value == "" && m.set != nil && !m.doubt:
		m.breaks("contexts", []*Event{m.set, e}, "a variable in session %s is gone, and no answer said so", m.session.id)
	case e.Value == "":
		m.set = nil
	case m.set != nil && m.set.Value == e.Value:
	case !slices.ContainsFunc(m.unsure, func(s *Event) bool { return s.Value == e.Value }):
		m.breaks("contexts", []*Event{e}, "a variable in session %s has a value that it was not given last", m.session.id)
	}
	m.last = e
	if e.Absent { // the next one is new
		m.last = nil
	}
}

// restarted takes an answer that says that the interpreter remembers nothing.
func (m *memory) restarted(e *Event) {
	if m.last != nil && !m.doubt && !m.session.mayStop(m.last.Start, e.End) && !m.during(DatabaseLoss, &Event{Start: m.last.Start, End: e.End}) {
		m.breaks("contexts", []*Event{m.last, e}, "an interpreter in session %s was started anew, and nothing that happened makes it so", m.session.id)
	}
	m.set, m.doubt = nil, false
}
