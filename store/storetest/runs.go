package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

var runCases = []testCase{
	{"RoundTrip", runRoundTrip},
	{"State", runState},
	{"Filter", runFilter},
	{"Output", runOutput},
	{"Trim", runTrim},
}

func runRoundTrip(t *testing.T, s cove.Store) {
	in, want := fullRun("a"), fullRun("a")
	ok(t, s.PutRun(t.Context(), in))
	spoil := func(r *cove.Run) {
		r.Request.Files[0].Name = "spoiled"
		r.Answer.Columns[0], r.Answer.Rows[0], r.Answer.Error.Type = "spoiled", json.RawMessage("0"), "spoiled"
	}
	spoil(in)
	for range 2 {
		got, err := s.GetRun(t.Context(), "a")
		ok(t, err)
		same(t, got, want)
		spoil(got)
		for _, listed := range all(t, s.Runs(t.Context(), cove.RunFilter{})) {
			same(t, listed, want)
			spoil(listed)
		}
	}
	fails(t, s.PutRun(t.Context(), fullRun("")), cove.Invalid)
	bad := fullRun("a")
	bad.Answer.Rows = []json.RawMessage{json.RawMessage("{not json")}
	fails(t, s.PutRun(t.Context(), bad), cove.Invalid)
	for range 2 {
		ok(t, s.DeleteRun(t.Context(), "a"))
	}
	_, err := s.GetRun(t.Context(), "a")
	fails(t, err, cove.NotFound)
	same(t, len(all(t, s.Runs(t.Context(), cove.RunFilter{}))), 0)
}

func runState(t *testing.T, s cove.Store) {
	const n = 150
	states := []cove.RunState{cove.RunRunning, cove.RunSucceeded, cove.RunFailed}
	for i := n - 1; i >= 0; i-- {
		ok(t, s.PutRun(t.Context(), &cove.Run{ID: cove.ID(fmt.Sprintf("r%03d", i)), State: states[i%3]}))
	}
	count := func(state cove.RunState) int {
		last, n := cove.ID(""), 0
		for _, r := range all(t, s.Runs(t.Context(), cove.RunFilter{State: state})) {
			if r.ID <= last || state != "" && r.State != state {
				t.Fatalf("run %s in state %s came after %s in the list of %q", r.ID, r.State, last, state)
			}
			last = r.ID
			n++
		}
		return n
	}
	same(t, count(cove.RunRunning), n/3)
	same(t, count(""), n)
	last := cove.ID("r~")
	for _, r := range all(t, s.Runs(t.Context(), cove.RunFilter{Newest: true})) {
		if r.ID >= last {
			t.Fatalf("run %s came after %s in the list from the newest", r.ID, last)
		}
		last = r.ID
	}
	same(t, last, cove.ID("r000"))
	back := all(t, s.Runs(t.Context(), cove.RunFilter{Newest: true, State: cove.RunFailed, After: "r146", Limit: 2}))
	same(t, len(back), 2)
	same(t, back[0].ID, cove.ID("r143"))
	same(t, back[1].ID, cove.ID("r140"))
	same(t, count("unknown"), 0)
	ok(t, s.PutRun(t.Context(), &cove.Run{ID: "r000", State: cove.RunSucceeded}))
	same(t, count(cove.RunRunning), n/3-1)
	same(t, count(cove.RunSucceeded), n/3+1)
}

func runFilter(t *testing.T, s cove.Store) {
	for i, r := range []cove.Run{
		{ID: "a", Tenant: "acme", Owner: "ann", Request: cove.RunRequest{Thread: "t"}},
		{ID: "b", Tenant: "acme", Owner: "bob", Request: cove.RunRequest{Thread: "t"}},
		{ID: "c", Tenant: "globex", Owner: "ann", Request: cove.RunRequest{Thread: "t"}},
		{ID: "d", Tenant: "acme", Owner: "ann"},
		{ID: "e", Tenant: "acme", Owner: "ann", State: cove.RunFailed, Request: cove.RunRequest{Thread: "t"}},
	} {
		r.CreatedAt = epoch.Add(time.Duration(i))
		ok(t, s.PutRun(t.Context(), &r))
	}
	for _, c := range []struct {
		f    cove.RunFilter
		want string
	}{
		{cove.RunFilter{}, "abcde"},
		{cove.RunFilter{Tenant: "acme"}, "abde"},
		{cove.RunFilter{Owner: "ann"}, "acde"},
		{cove.RunFilter{Thread: "t"}, "abce"},
		{cove.RunFilter{Tenant: "acme", Owner: "ann", Thread: "t"}, "ae"},
		{cove.RunFilter{Tenant: "acme", Owner: "ann", Thread: "t", State: cove.RunFailed}, "e"},
		{cove.RunFilter{Tenant: "acme", After: "b"}, "de"},
		{cove.RunFilter{Tenant: "acme", Owner: "ann", Limit: 2}, "ad"},
		{cove.RunFilter{After: "aa", Limit: 1}, "b"},
		{cove.RunFilter{Before: epoch}, ""},
		{cove.RunFilter{Before: epoch.Add(2).UTC()}, "ab"},
		{cove.RunFilter{Tenant: "acme", Before: epoch.Add(time.Hour)}, "abde"},
		{cove.RunFilter{Owner: "ANN"}, ""},
	} {
		var ids []byte
		for _, r := range all(t, s.Runs(t.Context(), c.f)) {
			ids = append(ids, r.ID...)
		}
		if got := string(ids); got != c.want {
			t.Errorf("%+v gave %q, want %q", c.f, got, c.want)
		}
	}
}

// runOutput keeps what programs write, which can be anything.
func runOutput(t *testing.T, s cove.Store) {
	r := fullRun("a")
	r.Answer.Stdout, r.Answer.Stderr = "a\xff\xfeb\x00\x1b[0m", "\xed\xa0\x80é"
	ok(t, s.PutRun(t.Context(), r))
	got, err := s.GetRun(t.Context(), "a")
	ok(t, err)
	same(t, got.Answer.Stdout, "a\ufffd\ufffdb\x00\x1b[0m")
	same(t, got.Answer.Stderr, "\ufffd\ufffd\ufffdé")
}

// runTrim forgets what is old, and of each tenant what is too much; never what goes
// on.
func runTrim(t *testing.T, s cove.Store) {
	begun := time.Date(2030, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	at := func(minutes int) time.Time { return begun.Add(time.Duration(minutes) * time.Minute) }
	for id, r := range map[cove.ID]cove.Run{
		// Ids do not tell what is old.
		"9": {Tenant: "a", State: cove.RunSucceeded, CreatedAt: at(0)},
		"8": {Tenant: "a", State: cove.RunRunning, CreatedAt: at(0)},
		"7": {Tenant: "a", State: cove.RunFailed, CreatedAt: at(10)},
		"6": {Tenant: "a", State: cove.RunSucceeded, CreatedAt: at(10)},
		"5": {Tenant: "a", State: cove.RunSucceeded, CreatedAt: at(11)},
		"4": {Tenant: "b", State: cove.RunSucceeded, CreatedAt: at(9)},
		"3": {Tenant: "b", State: cove.RunFailed, CreatedAt: at(10)},
	} {
		r.ID = id
		ok(t, s.PutRun(t.Context(), &r))
	}
	left := func() []string {
		ids := []string{}
		for _, r := range all(t, s.Runs(t.Context(), cove.RunFilter{})) {
			ids = append(ids, string(r.ID))
		}
		slices.Sort(ids)
		return ids
	}
	trim := func(before time.Time, most int, want int64, ids ...string) {
		t.Helper()
		n, err := s.TrimRuns(t.Context(), before, most)
		ok(t, err)
		same(t, n, want)
		same(t, left(), ids)
	}
	trim(at(0), 10, 0, "3", "4", "5", "6", "7", "8", "9")
	trim(at(9), 10, 1, "3", "4", "5", "6", "7", "8")
	trim(at(0), 2, 1, "3", "4", "5", "7", "8") // of two of one moment the earlier id
	trim(at(10).UTC(), 2, 1, "3", "5", "7", "8")
	trim(at(100), 2, 3, "8")
}
