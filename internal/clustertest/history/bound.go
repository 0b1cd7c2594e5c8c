package history

import (
	"cmp"
	"slices"
)

// edge is an end of a time in which a session surely had a sandbox.
type edge struct {
	at    int64
	by    int // 1: it begins
	event *Event
}

// bounds looks for a time at which a tenant surely had more sandboxes than it may. The
// bound itself is lost with the database of a server by itself. Sessions that no node
// could know of when others were opened do not count.
func (c *checker) bounds() {
	if c.Run.Bound == 0 {
		return
	}
	var edges []edge
	known := Never
	for _, f := range c.faults {
		if f.Op == DatabaseLoss {
			known = min(known, f.Start)
		}
	}
	c.each(func(s *session) {
		if (s.opened == nil || s.opened.Start < known) && !c.unknown(s) {
			edges = append(edges, s.held()...)
		}
	})
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	there := map[string]*Event{}
	for _, x := range edges {
		if x.by < 0 {
			delete(there, x.event.Session)
			continue
		}
		there[x.event.Session] = x.event
		if len(there) > c.Run.Bound {
			var shown []*Event
			for _, e := range there {
				shown = append(shown, e)
			}
			slices.SortFunc(shown, func(a, b *Event) int { return a.Number - b.Number })
			c.breaks("bound", shown, "%d sessions had a sandbox at once, of %d", len(there), c.Run.Bound)
			return
		}
	}
}

// held returns the times in which the session surely had its sandbox: from the end of
// something done in one to the begin of something else, with no stop between.
func (s *session) held() []edge {
	var edges []edge
	var first, last *Event // of such a time; with the earliest end and the latest start
	flush := func() {
		if first != nil && first.End < last.Start {
			edges = append(edges, edge{first.End, 1, first}, edge{last.Start, -1, last})
		}
	}
	for _, e := range s.events {
		if !e.ran() || e.Client == Final {
			continue
		}
		if first == nil || s.mayStop(first.Start, e.End) {
			flush()
			first, last = e, e
			continue
		}
		if e.End < first.End {
			first = e
		}
		if e.Start > last.Start {
			last = e
		}
	}
	flush()
	return edges
}
