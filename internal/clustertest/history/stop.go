package history

import (
	"net/http"
	"slices"
)

// ran reports whether the answer shows that the session had a sandbox at some time
// between Start and End.
func (e *Event) ran() bool {
	return e.Served() && e.Op != Get && e.Op != Stop && e.Op != Look
}

// mayStop reports whether the session may have been without its sandbox at some time in
// between.
func (s *session) mayStop(from, to int64) bool {
	return slices.ContainsFunc(s.events, func(e *Event) bool {
		return e.Op == Stop && !e.Unsent && e.Start < to && e.stopped() > from
	})
}

// stopped is when a stop can no longer come into effect. One that fails may have ended
// programs before it did.
func (e *Event) stopped() int64 {
	if e.Done() || e.Answered() && e.Status < http.StatusInternalServerError || e.Status == http.StatusInsufficientStorage {
		return e.End
	}
	return Never
}

// rests reports whether the session surely had no sandbox when a fault came.
func (s *session) rests(f *Event) bool {
	last := -1
	for i, e := range s.events {
		if e.Op == Stop && e.acked() && e.End < f.Start {
			last = i
		}
	}
	if last < 0 {
		return false
	}
	return !slices.ContainsFunc(s.events, func(e *Event) bool {
		begins := e.Op == Start || e.Op == Open
		return begins && !e.Unsent && e.Start < f.End && e.over() > s.events[last].Start
	})
}

// recovery looks for a server by itself that goes on refusing after what was done to it
// was undone.
func (c *checker) recovery() {
	if len(c.Run.Nodes) != 1 {
		return
	}
	for _, e := range c.Events {
		if !e.Op.IsFault() && e.Status >= http.StatusInternalServerError && c.sound(e.Node, e) {
			c.breaks("recovery", []*Event{e}, "nothing was done to the server, and it did not do this")
		}
	}
}
