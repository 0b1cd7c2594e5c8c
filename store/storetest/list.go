package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

var listCases = []testCase{
	{"Filter", listFilter},
	{"OrderAndPages", listPages},
	{"Metadata", listMetadata},
	{"Node", listNode},
	{"WriteWhileReading", listWrite},
	{"Nested", listNested},
	{"Break", listBreak},
	{"Again", listAgain},
	{"LargeRecords", listLarge},
	{"Cancel", listCancel},
}

// many is more than a store can sensibly read at once.
const many = 198

func numbered(i int) cove.ID { return cove.ID(fmt.Sprintf("s%05d", i)) }

func putMany(t *testing.T, s cove.Store, n int) {
	t.Helper()
	for i := range n {
		ok(t, s.PutSession(t.Context(), session(numbered(i))))
	}
}

func listFilter(t *testing.T, s cove.Store) {
	for _, rec := range []*cove.Session{
		session("a", held("ann", "1")),
		session("b", held("ann", "2"), inState(cove.Paused)),
		session("c", held("bob", "1"), func(s *cove.Session) { s.Spec.Project = "apollo" }),
		session("d", held("ann", "1"), inState(cove.Failed)),
		session("e", held("ann", "1"), inState(cove.Ended)),
		session("f", func(s *cove.Session) { s.Tenant = "globex" }),
		session("g", inState(cove.Ended), onNode("n1"), func(s *cove.Session) { s.Tenant, s.Spec.Project = "globex", "apollo" }),
		session("h", inState(cove.Stopped), onNode("n1")),
		session("i", inState(cove.Creating), onNode("n2")),
	} {
		ok(t, s.PutSession(t.Context(), rec))
	}
	for _, c := range []struct {
		f    cove.SessionFilter
		want string
	}{
		{cove.SessionFilter{}, "abcdfhi"},
		{cove.SessionFilter{Tenant: "acme"}, "abcdhi"},
		{cove.SessionFilter{Tenant: "globex"}, "f"},
		{cove.SessionFilter{Tenant: "nobody"}, ""},
		{cove.SessionFilter{User: "ann"}, "abd"},
		{cove.SessionFilter{Thread: "1"}, "acd"},
		{cove.SessionFilter{User: "ann", Thread: "1"}, "ad"},
		{cove.SessionFilter{Tenant: "acme", User: "ann", Thread: "1"}, "ad"},
		{cove.SessionFilter{Tenant: "globex", User: "ann"}, ""},
		{cove.SessionFilter{Project: "apollo"}, "c"},
		{cove.SessionFilter{State: cove.Running}, "acf"},
		{cove.SessionFilter{State: cove.Paused}, "b"},
		{cove.SessionFilter{State: cove.Stopped}, "h"},
		{cove.SessionFilter{State: cove.Creating}, "i"},
		{cove.SessionFilter{State: cove.Failed}, "d"},
		{cove.SessionFilter{State: "unknown"}, ""},
		{cove.SessionFilter{State: cove.Ended}, "eg"},
		{cove.SessionFilter{State: cove.Ended, Tenant: "acme"}, "e"},
		{cove.SessionFilter{State: cove.Ended, User: "ann", Thread: "1"}, "e"},
		{cove.SessionFilter{State: cove.Ended, Project: "apollo"}, "g"},
		{cove.SessionFilter{Node: "n1"}, "h"},
		{cove.SessionFilter{Node: "n2", Tenant: "acme", State: cove.Creating}, "i"},
		{cove.SessionFilter{Node: "n2", State: cove.Stopped}, ""},
		{cove.SessionFilter{Node: "n2", Tenant: "globex"}, ""},
		{cove.SessionFilter{Node: "n1", State: cove.Ended}, "g"},
		{cove.SessionFilter{Node: "n"}, ""},
		{cove.SessionFilter{Node: "n1", After: "h"}, ""},
		{cove.SessionFilter{User: "an%"}, ""},
		{cove.SessionFilter{User: "ANN"}, ""},
		{cove.SessionFilter{After: "c"}, "dfhi"},
		{cove.SessionFilter{After: "e", Limit: 2}, "fh"},
		{cove.SessionFilter{State: cove.Ended, After: "e"}, "g"},
		{cove.SessionFilter{Limit: 1}, "a"},
		{cove.SessionFilter{After: "z"}, ""},
	} {
		if got := letters(ids(all(t, s.Sessions(t.Context(), c.f)))); got != c.want {
			t.Errorf("%+v selects %q, want %q", c.f, got, c.want)
		}
	}
}

func listPages(t *testing.T, s cove.Store) {
	for i := many - 1; i >= 0; i-- { // against the order
		ok(t, s.PutSession(t.Context(), session(numbered(i))))
	}
	got := ids(all(t, s.Sessions(t.Context(), cove.SessionFilter{Tenant: "acme"})))
	same(t, len(got), many)
	for i, id := range got {
		same(t, id, numbered(i))
	}
	for _, size := range []int{1, 64, 128, many - 1, many, many + 1} {
		var paged []cove.ID
		f := cove.SessionFilter{Limit: size}
		for {
			page := ids(all(t, s.Sessions(t.Context(), f)))
			if len(page) > size {
				t.Fatalf("a page of %d has %d records", size, len(page))
			}
			if len(page) == 0 {
				break
			}
			paged = append(paged, page...)
			f.After = page[len(page)-1]
		}
		same(t, paged, got)
	}
	same(t, len(all(t, s.Sessions(t.Context(), cove.SessionFilter{After: numbered(many - 1)}))), 0)
	between := numbered(many-10) + "a" // no such record
	same(t, len(all(t, s.Sessions(t.Context(), cove.SessionFilter{After: between}))), 9)
}

// listMetadata looks for few records among many, which no page may cut short.
func listMetadata(t *testing.T, s cove.Store) {
	for i := range many {
		ok(t, s.PutSession(t.Context(), session(numbered(i), func(s *cove.Session) {
			s.Spec.Metadata = map[string]string{"n": fmt.Sprint(i % 60), "all": "yes", "quo'te": `"'`}
			if i == 67 {
				s.State = cove.Ended
			}
		})))
	}
	list := func(f cove.SessionFilter) []cove.ID { return ids(all(t, s.Sessions(t.Context(), f))) }
	seven := map[string]string{"n": "7", "all": "yes", "quo'te": `"'`}
	same(t, list(cove.SessionFilter{Metadata: seven}), []cove.ID{numbered(7), numbered(127), numbered(187)})
	same(t, list(cove.SessionFilter{Metadata: seven, Limit: 1}), []cove.ID{numbered(7)})
	same(t, list(cove.SessionFilter{Metadata: seven, After: numbered(7), Limit: 1}), []cove.ID{numbered(127)})
	same(t, list(cove.SessionFilter{Metadata: seven, State: cove.Ended}), []cove.ID{numbered(67)})
	same(t, list(cove.SessionFilter{Metadata: map[string]string{"n": "7", "all": "no"}}), []cove.ID{})
	same(t, len(list(cove.SessionFilter{Metadata: map[string]string{"n": ""}})), 0)
}

// listNode follows sessions from node to node, among more than fit on a page.
func listNode(t *testing.T, s cove.Store) {
	for i := range many {
		ok(t, s.PutSession(t.Context(), session(numbered(i), onNode(fmt.Sprint("n", i%2)))))
	}
	list := func(node string) []cove.ID {
		return ids(all(t, s.Sessions(t.Context(), cove.SessionFilter{Node: node})))
	}
	same(t, len(list("n0")), many/2)
	rec, err := s.GetSession(t.Context(), numbered(1))
	ok(t, err)
	for _, node := range []string{"n0", "", "n2"} {
		rec.Node = node
		ok(t, s.PutSession(t.Context(), rec))
		same(t, len(list("n1")), many/2-1)
	}
	same(t, list("n2"), []cove.ID{numbered(1)})
	same(t, len(list("n0")), many/2)
	same(t, len(list("")), many)
	ok(t, s.DeleteSession(t.Context(), numbered(1)))
	same(t, list("n2"), []cove.ID{})
}

// listWrite changes every record while it is being listed. What was there all
// along is seen once; the list ends.
func listWrite(t *testing.T, s cove.Store) {
	putMany(t, s, many)
	seen := map[cove.ID]int{}
	n := 0
	for rec, err := range s.Sessions(t.Context(), cove.SessionFilter{}) {
		ok(t, err)
		seen[rec.ID]++
		rec.Cause = "changed"
		ok(t, s.PutSession(t.Context(), rec))
		if n%3 == 0 {
			ok(t, s.DeleteSession(t.Context(), rec.ID))
		}
		if n < many {
			ok(t, s.PutSession(t.Context(), session("a"+rec.ID))) // before all others
		}
		n++
	}
	for i := range many {
		same(t, seen[numbered(i)], 1)
	}
	same(t, len(all(t, s.Sessions(t.Context(), cove.SessionFilter{}))), 2*many-many/3)
}

// listNested reads lists in lists, deeper than a store has connections.
func listNested(t *testing.T, s cove.Store) {
	putMany(t, s, 2)
	visits := 0
	var descend func(depth int)
	descend = func(depth int) {
		for rec, err := range s.Sessions(t.Context(), cove.SessionFilter{}) {
			ok(t, err)
			if depth == 0 {
				visits++
				ok(t, s.PutSession(t.Context(), rec))
				continue
			}
			descend(depth - 1)
		}
	}
	descend(7)
	same(t, visits, 1<<8)
}

func listBreak(t *testing.T, s cove.Store) {
	putMany(t, s, many)
	for range 32 { // more often than a store has connections
		for rec, err := range s.Sessions(t.Context(), cove.SessionFilter{}) {
			ok(t, err)
			same(t, rec.ID, numbered(0))
			break
		}
	}
	ok(t, s.DeleteSession(t.Context(), numbered(0)))
}

// listAgain ranges over one list twice: it starts over.
func listAgain(t *testing.T, s cove.Store) {
	putMany(t, s, 3)
	list := s.Sessions(t.Context(), cove.SessionFilter{Limit: 2})
	for range 2 {
		same(t, ids(all(t, list)), []cove.ID{numbered(0), numbered(1)})
	}
}

func listLarge(t *testing.T, s cove.Store) {
	const n, size = 24, 200 << 10
	for i := range n {
		ok(t, s.PutSession(t.Context(), session(numbered(i), func(s *cove.Session) {
			s.Spec.Env = map[string]string{"BIG": strings.Repeat("x", size+i)}
		})))
	}
	large := all(t, s.Sessions(t.Context(), cove.SessionFilter{}))
	same(t, len(large), n)
	for i, rec := range large {
		same(t, rec.ID, numbered(i))
		same(t, len(rec.Spec.Env["BIG"]), size+i)
	}
}

func listCancel(t *testing.T, s cove.Store) {
	putMany(t, s, many)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen, errs := 0, 0
	for _, err := range s.Sessions(ctx, cove.SessionFilter{}) {
		if err != nil {
			fails(t, err, cove.Canceled)
			errs++
			continue
		}
		if seen++; seen == 10 {
			cancel()
		}
	}
	same(t, []int{seen, errs}, []int{10, 1})
	same(t, len(all(t, s.Sessions(t.Context(), cove.SessionFilter{}))), many)
}
