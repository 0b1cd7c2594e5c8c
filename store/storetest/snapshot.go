package storetest

import (
	"fmt"
	"testing"

	"github.com/cove-sandbox/cove"
)

var snapshotCases = []testCase{
	{"RoundTrip", snapshotRoundTrip},
	{"Filter", snapshotFilter},
	{"List", snapshotList},
}

func snapshotRoundTrip(t *testing.T, s cove.Store) {
	want := fullSnapshot("a")
	ok(t, s.PutSnapshot(t.Context(), want))
	got, err := s.GetSnapshot(t.Context(), "a")
	ok(t, err)
	same(t, got, want)
	got.Name = "spoiled"
	same(t, all(t, s.Snapshots(t.Context(), cove.SnapshotFilter{})), []*cove.Snapshot{want})
	want.Tenant, want.Name = "globex", "after"
	ok(t, s.PutSnapshot(t.Context(), want))
	same(t, all(t, s.Snapshots(t.Context(), cove.SnapshotFilter{Tenant: "globex"})), []*cove.Snapshot{want})
	same(t, len(all(t, s.Snapshots(t.Context(), cove.SnapshotFilter{Tenant: "acme"}))), 0)

	fails(t, s.PutSnapshot(t.Context(), fullSnapshot("")), cove.Invalid)
	bad := fullSnapshot("b")
	bad.CreatedAt = epoch.AddDate(10000, 0, 0)
	fails(t, s.PutSnapshot(t.Context(), bad), cove.Invalid)
	for range 2 {
		ok(t, s.DeleteSnapshot(t.Context(), "a"))
	}
	_, err = s.GetSnapshot(t.Context(), "a")
	fails(t, err, cove.NotFound)
	same(t, len(all(t, s.Snapshots(t.Context(), cove.SnapshotFilter{}))), 0)
}

func snapshotFilter(t *testing.T, s cove.Store) {
	for _, snap := range []*cove.Snapshot{
		{ID: "a", Tenant: "acme", Session: "s1"},
		{ID: "b", Tenant: "acme", Session: "s2"},
		{ID: "c", Tenant: "globex", Session: "s3"},
		{ID: "d", Tenant: "acme", Session: "s1"},
	} {
		ok(t, s.PutSnapshot(t.Context(), snap))
	}
	for _, c := range []struct {
		f    cove.SnapshotFilter
		want string
	}{
		{cove.SnapshotFilter{}, "abcd"},
		{cove.SnapshotFilter{Tenant: "acme"}, "abd"},
		{cove.SnapshotFilter{Session: "s1"}, "ad"},
		{cove.SnapshotFilter{Tenant: "acme", Session: "s1", After: "a"}, "d"},
		{cove.SnapshotFilter{Tenant: "globex", Session: "s1"}, ""},
		{cove.SnapshotFilter{Tenant: "acme", Limit: 2}, "ab"},
		{cove.SnapshotFilter{After: "b", Limit: 1}, "c"},
		{cove.SnapshotFilter{After: "d"}, ""},
	} {
		var found []cove.ID
		for _, snap := range all(t, s.Snapshots(t.Context(), c.f)) {
			found = append(found, snap.ID)
		}
		if got := letters(found); got != c.want {
			t.Errorf("%+v selects %q, want %q", c.f, got, c.want)
		}
	}
}

func snapshotList(t *testing.T, s cove.Store) {
	const n = 150
	for i := n - 1; i >= 0; i-- {
		ok(t, s.PutSnapshot(t.Context(), fullSnapshot(cove.ID(fmt.Sprintf("p%03d", i)))))
	}
	snaps := all(t, s.Snapshots(t.Context(), cove.SnapshotFilter{}))
	same(t, len(snaps), n)
	for i, snap := range snaps {
		same(t, snap.ID, cove.ID(fmt.Sprintf("p%03d", i)))
	}
}
