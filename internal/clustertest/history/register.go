package history

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// ever is before everything.
const ever int64 = -1

// zone is what is known of one value of a file: all that wrote or read it. A value
// that nothing wrote and whose name is "" is a file that is not there yet.
//
// No two values are the same, so the file behaves as one file exactly where the
// zones can be put in an order: a zone whose first end is before its last start
// surely reigns in between, and another may neither reign at the same time nor
// have all of its events within that time.
type zone struct {
	value string
	write *Event
	reads []*Event
	first int64 // end
	last  int64 // start
	ended *Event
	began *Event
}

func (z *zone) reigns() bool { return z.first < z.last }
func (z *zone) low() int64   { return min(z.first, z.last) }
func (z *zone) high() int64  { return max(z.first, z.last) }

func (z *zone) take(e *Event, start, end int64) {
	if end < z.first || z.ended == nil {
		z.first, z.ended = end, e
	}
	if start > z.last || z.began == nil {
		z.last, z.began = start, e
	}
}

// reads checks every file of every session by itself.
func (c *checker) reads() {
	c.each(func(s *session) {
		files, names := map[string][]*Event{}, []string(nil)
		for _, e := range s.events {
			if e.File == "" || !e.Op.writes() && e.Op != Read && e.Op != Exec {
				continue
			}
			if files[e.File] == nil {
				names = append(names, e.File)
			}
			files[e.File] = append(files[e.File], e)
		}
		for _, name := range names {
			c.file(s, name, files[name])
		}
	})
}

func (c *checker) file(s *session, name string, events []*Event) {
	zones, order := map[string]*zone{}, []*zone(nil)
	of := func(value string) *zone {
		if zones[value] == nil {
			zones[value] = &zone{value: value}
			order = append(order, zones[value])
		}
		return zones[value]
	}
	nothing := &Event{Op: Write, Session: s.id, File: name, Status: http.StatusOK}
	of("").write = nothing
	of("").take(nothing, ever, ever)
	for _, e := range events {
		if e.Op.writes() && !e.Unsent && !e.refused() {
			z := of(e.Value)
			z.write = e
			z.take(e, e.Start, e.over())
		}
	}
	for _, e := range events {
		if e.Op.writes() || !e.Served() {
			continue
		}
		z := zones[e.Value]
		if z == nil || z.write.Start > e.End {
			c.breaks("reads", []*Event{e}, "session %s returned for %s what nobody had written there", s.id, name)
			continue
		}
		z.reads = append(z.reads, e)
		z.take(e, e.Start, e.End)
	}
	// What may have been written and was never seen need not have been.
	order = slices.DeleteFunc(order, func(z *zone) bool { return !z.write.acked() && len(z.reads) == 0 })
	c.inOrder(s, name, order)
}

// inOrder looks for two values of a file that were there at the same time, or of
// which one came back after the other.
func (c *checker) inOrder(s *session, name string, zones []*zone) {
	slices.SortStableFunc(zones, func(a, b *zone) int { return cmp.Compare(a.low(), b.low()) })
	var reign *zone // the one that lasts longest so far
	for _, z := range zones {
		if reign != nil && z.low() < reign.high() && (z.reigns() || z.high() < reign.high()) {
			c.breaks("reads", append(reign.shown(), z.shown()...), "session %s, file %s: %q and %q cannot both have been there in any order: one was lost, or came back", s.id, name, reign.value, z.value)
			return
		}
		if z.reigns() && (reign == nil || z.high() > reign.high()) {
			reign = z
		}
	}
}

// shown is the events that make a zone as long as it is.
func (z *zone) shown() []*Event {
	var all []*Event
	for _, e := range []*Event{z.write, z.ended, z.began} {
		if e.Number != 0 && !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	return all
}

// draft begins the names of files that are being written.
const draft = ".cove-draft-"

// leaves reports whether a file of this name may be there at a time because of e.
func (e *Event) leaves(name string, at int64) bool {
	switch {
	case e.Unsent:
		return false
	case e.Op == Replace && name == e.File+".new": // of a program that was killed
		return true
	case e.Op == Write && strings.HasPrefix(name, draft):
		return e.over() > at
	}
	return (e.Op.writes() || e.Op == Append) && name == e.File
}

// lists checks that what was surely written is in every list, and nothing else.
func (c *checker) lists() {
	c.each(func(s *session) {
		for _, l := range s.events {
			if l.Op != List || !l.Done() {
				continue
			}
			for _, w := range s.events {
				if w.Op.writes() && w.acked() && w.End < l.Start && !slices.Contains(l.Files, w.File) {
					c.breaks("reads", []*Event{w, l}, "session %s lists no %s, which was written", s.id, w.File)
					break
				}
			}
			for _, name := range l.Files {
				if !slices.ContainsFunc(s.events, func(w *Event) bool { return w.Start < l.End && w.leaves(name, l.Start) }) {
					c.breaks("reads", []*Event{l}, "session %s lists %s, which nobody wrote there", s.id, name)
				}
			}
		}
	})
}
