package storetest

import (
	"fmt"
	"testing"

	"github.com/cove-sandbox/cove"
)

var volumeCases = []testCase{
	{"RoundTrip", volumeRoundTrip},
	{"Filter", volumeFilter},
	{"List", volumeList},
}

func volumeRoundTrip(t *testing.T, s cove.Store) {
	want := fullVolume("a")
	ok(t, s.PutVolume(t.Context(), want))
	got, err := s.GetVolume(t.Context(), "a")
	ok(t, err)
	same(t, got, want)
	got.Name = "spoiled"
	same(t, all(t, s.Volumes(t.Context(), cove.VolumeFilter{})), []*cove.SavedVolume{want})
	want.Tenant, want.Name, want.Pending = "globex", "after", false
	ok(t, s.PutVolume(t.Context(), want))
	same(t, all(t, s.Volumes(t.Context(), cove.VolumeFilter{Tenant: "globex"})), []*cove.SavedVolume{want})
	same(t, len(all(t, s.Volumes(t.Context(), cove.VolumeFilter{Tenant: "acme"}))), 0)

	fails(t, s.PutVolume(t.Context(), fullVolume("")), cove.Invalid)
	bad := fullVolume("b")
	bad.CreatedAt = epoch.AddDate(10000, 0, 0)
	fails(t, s.PutVolume(t.Context(), bad), cove.Invalid)
	bad = fullVolume("b")
	bad.Tenant = "a\xffb"
	fails(t, s.PutVolume(t.Context(), bad), cove.Invalid)
	for range 2 {
		ok(t, s.DeleteVolume(t.Context(), "a"))
	}
	_, err = s.GetVolume(t.Context(), "a")
	fails(t, err, cove.NotFound)
	same(t, len(all(t, s.Volumes(t.Context(), cove.VolumeFilter{}))), 0)
}

func volumeFilter(t *testing.T, s cove.Store) {
	for _, v := range []*cove.SavedVolume{
		{ID: "a", Tenant: "acme"}, {ID: "b", Tenant: "acme"}, {ID: "c", Tenant: "globex"}, {ID: "d", Tenant: "acme"},
	} {
		ok(t, s.PutVolume(t.Context(), v))
	}
	for _, c := range []struct {
		f    cove.VolumeFilter
		want string
	}{
		{cove.VolumeFilter{}, "abcd"},
		{cove.VolumeFilter{Tenant: "acme"}, "abd"},
		{cove.VolumeFilter{Tenant: "acme", After: "a"}, "bd"},
		{cove.VolumeFilter{Tenant: "acme", Limit: 2}, "ab"},
		{cove.VolumeFilter{After: "b", Limit: 1}, "c"},
		{cove.VolumeFilter{After: "d"}, ""},
		{cove.VolumeFilter{Tenant: "nobody"}, ""},
	} {
		var found []cove.ID
		for _, v := range all(t, s.Volumes(t.Context(), c.f)) {
			found = append(found, v.ID)
		}
		if got := letters(found); got != c.want {
			t.Errorf("%+v selects %q, want %q", c.f, got, c.want)
		}
	}
}

func volumeList(t *testing.T, s cove.Store) {
	const n = 150
	for i := n - 1; i >= 0; i-- {
		ok(t, s.PutVolume(t.Context(), fullVolume(cove.ID(fmt.Sprintf("p%03d", i)))))
	}
	list := all(t, s.Volumes(t.Context(), cove.VolumeFilter{}))
	same(t, len(list), n)
	for i, v := range list {
		same(t, v.ID, cove.ID(fmt.Sprintf("p%03d", i)))
	}
}
