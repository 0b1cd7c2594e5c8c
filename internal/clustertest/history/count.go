package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Counts is how much is in a history.
type Counts struct {
	Done    map[Op]int     // what clients did
	Faults  map[Op]int     // what was done to the cluster
	Refused map[string]int // by status and reason
	Unknown int            // without an answer
	Created int            // sessions
	Lost    int            // of them, for want of their node
	Kept    int            // of them, that answered in the end
	Tokens  int            // programs that told their sandbox
}

func count(h *History) Counts {
	n := Counts{Done: map[Op]int{}, Faults: map[Op]int{}, Refused: map[string]int{}}
	created, lost, kept := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, e := range h.Events {
		switch {
		case e.Op.IsFault():
			n.Faults[e.Op]++
			continue
		case e.Done() || e.Absent:
			n.Done[e.Op]++
		case e.Answered():
			n.Refused[strings.TrimSuffix(fmt.Sprintf("%d %s", e.Status, e.Reason), " ")]++
		default:
			n.Unknown++
		}
		if e.Token != "" {
			n.Tokens++
		}
		if e.Created {
			created[e.Session] = true
		}
		if e.Gone() && e.Reason == nodeLost {
			lost[e.Session] = true
		}
		if e.Client == Final && e.Served() {
			kept[e.Session] = true
		}
	}
	for id := range created {
		if lost[id] {
			n.Lost++
		}
		if kept[id] {
			n.Kept++
		}
	}
	n.Created = len(created)
	return n
}

// Least is how much a history must have, so that nobody takes one in which nothing
// happened for one in which nothing went wrong.
type Least struct {
	Done    map[Op]int
	Faults  map[Op]int
	Created int
	Lost    int
	Kept    int
	Tokens  int
}

// Lacks returns what a history has too little of.
func (n Counts) Lacks(l Least) []string {
	var all []string
	lacks := func(what string, got, want int) {
		if got < want {
			all = append(all, fmt.Sprintf("%d × %s; want at least %d", got, what, want))
		}
	}
	for _, op := range slices.Sorted(maps.Keys(l.Done)) {
		lacks(string(op), n.Done[op], l.Done[op])
	}
	for _, op := range slices.Sorted(maps.Keys(l.Faults)) {
		lacks(string(op), n.Faults[op], l.Faults[op])
	}
	lacks("a session created", n.Created, l.Created)
	lacks("a session lost", n.Lost, l.Lost)
	lacks("a session kept", n.Kept, l.Kept)
	lacks("a sandbox told", n.Tokens, l.Tokens)
	return all
}

// String is the counts for people.
func (n Counts) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d sessions created, %d lost, %d there in the end; %d times a program told its sandbox; %d without an answer", n.Created, n.Lost, n.Kept, n.Tokens, n.Unknown)
	list(&b, "done", n.Done)
	list(&b, "refused", n.Refused)
	list(&b, "faults", n.Faults)
	return b.String()
}

func list[K ~string](b *strings.Builder, name string, m map[K]int) {
	fmt.Fprintf(b, "\n  %s:", name)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(b, " %s %d,", string(k), m[k])
	}
}
