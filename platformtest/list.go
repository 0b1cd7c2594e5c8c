package platformtest

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
)

func listCases() []testCase {
	return []testCase{
		{"filters", listFilters},
		{"pages", listPages},
		{"broken_early", listBrokenEarly},
	}
}

func listFilters(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	a := r.session(p, cove.Spec{Project: "p", User: "u", Thread: "t1", Metadata: map[string]string{"team": "red", "n": "1"}}).ID
	b := r.session(p, cove.Spec{Project: "p", User: "u", Thread: "t2", Metadata: map[string]string{"team": "red"}}).ID
	c := r.session(p, cove.Spec{Project: "q", User: "v", Thread: "t1"}).ID
	r.stop(p, c)
	for _, f := range []struct {
		filter cove.SessionFilter
		want   []cove.ID
	}{
		{cove.SessionFilter{}, []cove.ID{a, b, c}},
		{cove.SessionFilter{Project: "p"}, []cove.ID{a, b}},
		{cove.SessionFilter{User: "v"}, []cove.ID{c}},
		{cove.SessionFilter{Thread: "t1"}, []cove.ID{a, c}},
		{cove.SessionFilter{User: "u", Thread: "t1"}, []cove.ID{a}},
		{cove.SessionFilter{State: cove.Stopped}, []cove.ID{c}},
		{cove.SessionFilter{State: cove.Running}, []cove.ID{a, b}},
		{cove.SessionFilter{Metadata: map[string]string{"team": "red"}}, []cove.ID{a, b}},
		{cove.SessionFilter{Metadata: map[string]string{"team": "red", "n": "1"}}, []cove.ID{a}},
		{cove.SessionFilter{Project: "none"}, nil},
		{cove.SessionFilter{Tenant: "globex"}, []cove.ID{a, b, c}}, // the engine sets the tenant
	} {
		got := ids(all(r, p.Sessions().List(r.ctx, f.filter)))
		slices.Sort(f.want)
		if !slices.Equal(got, f.want) {
			t.Errorf("%+v: %s", f.filter, cmp.Diff(f.want, got))
		}
	}
}

func listPages(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	var want []cove.ID
	for range 7 {
		want = append(want, r.session(p, cove.Spec{}).ID)
	}
	slices.Sort(want)
	var got []cove.ID
	for page := range 10 {
		filter := cove.SessionFilter{Limit: 3}
		if page > 0 {
			filter.After = got[len(got)-1]
		}
		part := ids(all(r, p.Sessions().List(r.ctx, filter)))
		if len(part) > 3 {
			t.Fatalf("a page of 3 has %d sessions", len(part))
		}
		if len(part) == 0 {
			break
		}
		got = append(got, part...)
	}
	same(t, "the pages together", got, want)
}

// listBrokenEarly leaves a loop in the middle: whatever the list held must be
// free again.
func listBrokenEarly(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	for range 3 {
		r.session(p, cove.Spec{})
	}
	for range 20 {
		n := 0
		for one, err := range p.Sessions().List(r.ctx, cove.SessionFilter{}) {
			r.must(err, "list")
			r.get(p, one.ID)
			if n++; n == 2 {
				break
			}
		}
	}
	r.closeNow(p, r.session(p, cove.Spec{}).ID)
}
