package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

var callCases = []testCase{
	{"Ended", callEnded},
	{"Closed", callClosed},
}

// call is one use of a method, with what it needs.
type call struct {
	name string
	do   func(context.Context, cove.Store) error
}

// calls uses every method that takes a context.
var calls = []call{
	{"PutSession", func(ctx context.Context, s cove.Store) error { return s.PutSession(ctx, session("new")) }},
	{"GetSession", func(ctx context.Context, s cove.Store) error { _, err := s.GetSession(ctx, "a"); return err }},
	{"Sessions", func(ctx context.Context, s cove.Store) error { return first(s.Sessions(ctx, cove.SessionFilter{})) }},
	{"DeleteSession", func(ctx context.Context, s cove.Store) error { return s.DeleteSession(ctx, "a") }},
	{"PutKey", func(ctx context.Context, s cove.Store) error { return s.PutKey(ctx, fullKey("new")) }},
	{"KeyByHash", func(ctx context.Context, s cove.Store) error {
		_, err := s.KeyByHash(ctx, fullKey("a").Hash)
		return err
	}},
	{"KeyByID", func(ctx context.Context, s cove.Store) error { _, err := s.KeyByID(ctx, "a"); return err }},
	{"Keys", func(ctx context.Context, s cove.Store) error { return first(s.Keys(ctx)) }},
	{"PutTenant", func(ctx context.Context, s cove.Store) error { return s.PutTenant(ctx, fullTenant("new")) }},
	{"GetTenant", func(ctx context.Context, s cove.Store) error { _, err := s.GetTenant(ctx, "acme"); return err }},
	{"AddUsage", func(ctx context.Context, s cove.Store) error {
		_, err := s.AddUsage(ctx, "acme", fullUsage())
		return err
	}},
	{"AddUsage of nothing", func(ctx context.Context, s cove.Store) error {
		_, err := s.AddUsage(ctx, "acme", cove.Consumption{})
		return err
	}},
	{"PutSnapshot", func(ctx context.Context, s cove.Store) error { return s.PutSnapshot(ctx, fullSnapshot("new")) }},
	{"GetSnapshot", func(ctx context.Context, s cove.Store) error { _, err := s.GetSnapshot(ctx, "a"); return err }},
	{"Snapshots", func(ctx context.Context, s cove.Store) error { return first(s.Snapshots(ctx, cove.SnapshotFilter{})) }},
	{"DeleteSnapshot", func(ctx context.Context, s cove.Store) error { return s.DeleteSnapshot(ctx, "a") }},
	{"PutVolume", func(ctx context.Context, s cove.Store) error { return s.PutVolume(ctx, fullVolume("new")) }},
	{"GetVolume", func(ctx context.Context, s cove.Store) error { _, err := s.GetVolume(ctx, "a"); return err }},
	{"Volumes", func(ctx context.Context, s cove.Store) error { return first(s.Volumes(ctx, cove.VolumeFilter{})) }},
	{"DeleteVolume", func(ctx context.Context, s cove.Store) error { return s.DeleteVolume(ctx, "a") }},
	{"PutRun", func(ctx context.Context, s cove.Store) error { return s.PutRun(ctx, fullRun("new")) }},
	{"GetRun", func(ctx context.Context, s cove.Store) error { _, err := s.GetRun(ctx, "a"); return err }},
	{"Runs", func(ctx context.Context, s cove.Store) error { return first(s.Runs(ctx, cove.RunFilter{})) }},
	{"DeleteRun", func(ctx context.Context, s cove.Store) error { return s.DeleteRun(ctx, "a") }},
	{"PutMessage", func(ctx context.Context, s cove.Store) error { return s.PutMessage(ctx, fullMessage("new")) }},
	{"Messages", func(ctx context.Context, s cove.Store) error { return first(s.Messages(ctx, cove.MessageFilter{})) }},
	{"DeleteMessages", func(ctx context.Context, s cove.Store) error { return s.DeleteMessages(ctx, "acme", "key-1", "t-1") }},
	{"TrimMessages", func(ctx context.Context, s cove.Store) error {
		_, err := s.TrimMessages(ctx, epoch.Add(time.Hour))
		return err
	}},
	{"TakeClaim", func(ctx context.Context, s cove.Store) error {
		_, err := s.TakeClaim(ctx, claim("acme", "new"), epoch)
		return err
	}},
	{"SetClaim", func(ctx context.Context, s cove.Store) error { return s.SetClaim(ctx, "acme", "a", "changed") }},
	{"DropClaim", func(ctx context.Context, s cove.Store) error { return s.DropClaim(ctx, "acme", "a") }},
}

// contents is all that a store holds.
type contents struct {
	Sessions, Ended []*cove.Session
	Keys            []*cove.Key
	Tenants         []*cove.Tenant
	Usage           cove.Consumption
	Snapshots       []*cove.Snapshot
	Volumes         []*cove.SavedVolume
	Runs            []*cove.Run
	Messages        []*cove.Message
	Claims          []*cove.Claim
}

// fill puts one or more of everything into a store.
func fill(t *testing.T, s cove.Store) {
	t.Helper()
	gone := fullSession("b")
	gone.State = cove.Ended
	for _, rec := range []*cove.Session{fullSession("a"), gone} {
		ok(t, s.PutSession(t.Context(), rec))
		ok(t, s.PutSession(t.Context(), rec)) // so that the version is not the first
	}
	ok(t, s.PutKey(t.Context(), fullKey("a")))
	ok(t, s.PutTenant(t.Context(), fullTenant("acme")))
	_, err := s.AddUsage(t.Context(), "acme", fullUsage())
	ok(t, err)
	ok(t, s.PutSnapshot(t.Context(), fullSnapshot("a")))
	ok(t, s.PutVolume(t.Context(), fullVolume("a")))
	ok(t, s.PutRun(t.Context(), fullRun("a")))
	ok(t, s.PutMessage(t.Context(), fullMessage("a")))
	taken(t, s, claim("acme", "a"), epoch)
	ok(t, s.SetClaim(t.Context(), "acme", "a", "made"))
}

// read returns what fill put, and what the calls could have changed.
func read(t *testing.T, s cove.Store) contents {
	t.Helper()
	usage, err := s.AddUsage(t.Context(), "acme", cove.Consumption{})
	ok(t, err)
	c := contents{
		Sessions:  all(t, s.Sessions(t.Context(), cove.SessionFilter{})),
		Ended:     all(t, s.Sessions(t.Context(), cove.SessionFilter{State: cove.Ended})),
		Keys:      all(t, s.Keys(t.Context())),
		Usage:     usage,
		Snapshots: all(t, s.Snapshots(t.Context(), cove.SnapshotFilter{})),
		Volumes:   all(t, s.Volumes(t.Context(), cove.VolumeFilter{})),
		Runs:      all(t, s.Runs(t.Context(), cove.RunFilter{})),
		Messages:  all(t, s.Messages(t.Context(), cove.MessageFilter{})),
	}
	for _, name := range []string{"acme", "new"} {
		if tenant, err := s.GetTenant(t.Context(), name); err == nil {
			c.Tenants = append(c.Tenants, tenant)
		}
	}
	for _, key := range []string{"a", "new"} {
		old, err := s.TakeClaim(t.Context(), claim("acme", key), epoch)
		ok(t, err)
		if old == nil {
			ok(t, s.DropClaim(t.Context(), "acme", key))
		}
		c.Claims = append(c.Claims, old)
	}
	return c
}

// callEnded uses every method under contexts that have ended: they say so, and
// nothing has changed.
func callEnded(t *testing.T, s cove.Store) {
	fill(t, s)
	want := read(t, s)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	for _, c := range calls {
		t.Log(c.name)
		fails(t, c.do(canceled, s), cove.Canceled)
		fails(t, c.do(late, s), cove.Timeout)
	}
	same(t, read(t, s), want)
}

func callClosed(t *testing.T, s cove.Store) {
	fill(t, s)
	for c, err := range s.Sessions(t.Context(), cove.SessionFilter{}) { // one page is read already
		ok(t, err)
		ok(t, s.Close())
		same(t, c.ID, cove.ID("a"))
	}
	for _, c := range calls {
		t.Log(c.name)
		fails(t, c.do(t.Context(), s), cove.Unavailable)
	}
	ok(t, s.Close())
}
