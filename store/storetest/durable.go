package storetest

import (
	"testing"

	"github.com/cove-sandbox/cove"
)

// RunDurable tests a store that outlives its process. Open returns the store
// that is kept in dir, which exists; two of them may be open at a time, as after
// a crash or in two processes. RunDurable closes what it opens. A run in which no
// case started fails.
func RunDurable(t *testing.T, open func(t *testing.T, dir string) cove.Store) {
	started := 0
	for name, closing := range map[string]bool{"Reopen": true, "Crash": false} {
		t.Run(name, func(t *testing.T) {
			started++
			reopen(t, open, closing)
		})
	}
	for _, c := range []struct {
		name string
		run  func(t *testing.T, a, b cove.Store)
	}{
		{"Shared/Sees", sharedSees},
		{"Shared/Version", versionRace},
		{"Shared/LiveKey", liveKeyRace},
		{"Shared/Claim", claimRace},
		{"Shared/Usage", usageRace},
	} {
		t.Run(c.name, func(t *testing.T) {
			started++
			dir := t.TempDir()
			a, b := open(t, dir), open(t, dir)
			t.Cleanup(func() {
				ok(t, a.Close())
				ok(t, b.Close())
			})
			c.run(t, a, b)
		})
	}
	if started == 0 {
		t.Error(noCase)
	}
}

// reopen keeps everything across several openings, with or without a Close in
// between, and goes on where it was.
func reopen(t *testing.T, open func(t *testing.T, dir string) cove.Store, closing bool) {
	dir := t.TempDir()
	s := open(t, dir)
	fill(t, s)
	want := read(t, s)
	for range 3 {
		old := s
		if closing {
			ok(t, old.Close())
		} else {
			t.Cleanup(func() { ok(t, old.Close()) }) // late, as if never
		}
		s = open(t, dir)
		same(t, read(t, s), want)
	}
	t.Cleanup(func() { ok(t, s.Close()) })

	rec := want.Sessions[0]
	fails(t, s.PutSession(t.Context(), fullSession("rival")), cove.Conflict)
	rec.State = cove.Running
	ok(t, s.PutSession(t.Context(), rec))
	stale := *rec
	stale.Version--
	fails(t, s.PutSession(t.Context(), &stale), cove.Conflict)
	ok(t, s.DeleteSession(t.Context(), rec.ID))
	ok(t, s.PutSession(t.Context(), fullSession("rival")))
}

// sharedSees shows each of two stores what the other writes, at once.
func sharedSees(t *testing.T, a, b cove.Store) {
	fill(t, a)
	same(t, read(t, b), read(t, a))
	ok(t, b.DeleteSession(t.Context(), "a"))
	_, err := a.GetSession(t.Context(), "a")
	fails(t, err, cove.NotFound)
}
