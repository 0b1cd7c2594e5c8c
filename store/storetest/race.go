package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

var raceCases = []testCase{
	{"Version", raceVersion},
	{"LiveKey", raceLiveKey},
	{"Insert", raceInsert},
	{"Claim", raceClaim},
	{"Usage", raceUsage},
	{"ReadersAndWriters", raceReaders},
}

// writers is how many callers want the same thing at the same time.
const writers = 64

func raceVersion(t *testing.T, s cove.Store) { versionRace(t, s, s) }

// versionRace lets writers on two stores, which may be one, replace the same
// record, several times over.
func versionRace(t *testing.T, a, b cove.Store) {
	rec := session("a")
	ok(t, a.PutSession(t.Context(), rec))
	for range 5 {
		errs := together(writers, func(i int) error {
			mine := *rec
			mine.Cause = fmt.Sprint(i)
			return []cove.Store{a, b}[i%2].PutSession(t.Context(), &mine)
		})
		winner := oneWinner(t, errs)
		got, err := a.GetSession(t.Context(), "a")
		ok(t, err)
		same(t, got.Cause, fmt.Sprint(winner))
		rec = got
	}
}

func raceLiveKey(t *testing.T, s cove.Store) { liveKeyRace(t, s, s) }

func liveKeyRace(t *testing.T, a, b cove.Store) {
	for round := range 5 {
		thread := fmt.Sprint(round)
		errs := together(writers, func(i int) error {
			return []cove.Store{a, b}[i%2].PutSession(t.Context(), session(cove.ID(fmt.Sprintf("%d-%d", round, i)), held("ann", thread)))
		})
		winner := oneWinner(t, errs)
		same(t, ids(all(t, a.Sessions(t.Context(), cove.SessionFilter{Thread: thread}))), []cove.ID{cove.ID(fmt.Sprintf("%d-%d", round, winner))})
	}
}

func raceInsert(t *testing.T, s cove.Store) {
	errs := together(writers, func(i int) error {
		rec := session("a")
		rec.Cause = fmt.Sprint(i)
		return s.PutSession(t.Context(), rec)
	})
	winner := oneWinner(t, errs)
	got, err := s.GetSession(t.Context(), "a")
	ok(t, err)
	same(t, got.Cause, fmt.Sprint(winner))
}

func raceClaim(t *testing.T, s cove.Store) { claimRace(t, s, s) }

func claimRace(t *testing.T, a, b cove.Store) {
	now := epoch
	for range 5 { // each time the claim of the round before has expired
		errs := together(writers, func(i int) error {
			c := claim("acme", "k")
			c.Digest, c.ExpiresAt = fmt.Sprint(i), now.Add(time.Hour)
			old, err := []cove.Store{a, b}[i%2].TakeClaim(t.Context(), c, now)
			if err == nil && old != nil {
				return cove.Errorf(cove.Conflict, "held")
			}
			return err
		})
		winner := oneWinner(t, errs)
		old, err := a.TakeClaim(t.Context(), claim("acme", "k"), now)
		ok(t, err)
		same(t, old.Digest, fmt.Sprint(winner))
		now = now.Add(time.Hour)
	}
}

func raceUsage(t *testing.T, s cove.Store) { usageRace(t, s, s) }

func usageRace(t *testing.T, a, b cove.Store) {
	const rounds = 10
	for _, err := range together(writers, func(i int) error {
		last := cove.Consumption{}
		mine := cove.Consumption{CPU: time.Duration(i + 1), Executions: 1, MemoryTime: 1}
		for range rounds {
			sum, err := []cove.Store{a, b}[i%2].AddUsage(t.Context(), "acme", mine)
			if err != nil {
				return err
			}
			if least := last.Plus(mine); sum.CPU < least.CPU || sum.Executions < least.Executions || sum.MemoryTime < least.MemoryTime {
				return fmt.Errorf("the sum went from %+v to %+v", last, sum)
			}
			last = sum
		}
		return nil
	}) {
		ok(t, err)
	}
	sum, err := a.AddUsage(t.Context(), "acme", cove.Consumption{})
	ok(t, err)
	same(t, sum, cove.Consumption{CPU: rounds * writers * (writers + 1) / 2, Executions: rounds * writers, MemoryTime: rounds * writers})
}

// raceReaders lists and reads while others write: what is read is always whole.
func raceReaders(t *testing.T, s cove.Store) {
	const n, rounds = 8, 20
	for i := range n {
		ok(t, s.PutSession(t.Context(), session(numbered(i))))
	}
	write := func(i int) error {
		for range rounds {
			rec, err := s.GetSession(t.Context(), numbered(i))
			if err != nil {
				return err
			}
			rec.Cause, rec.Owner = fmt.Sprint(rec.Version), fmt.Sprint(rec.Version)
			if err := s.PutSession(t.Context(), rec); err != nil {
				return err
			}
		}
		return nil
	}
	look := func() error {
		for range rounds {
			seen := 0
			for rec, err := range s.Sessions(t.Context(), cove.SessionFilter{}) {
				if err != nil {
					return err
				}
				if rec.Cause != rec.Owner || rec.Version != 1 && rec.Cause != fmt.Sprint(rec.Version-1) {
					return fmt.Errorf("a record of two halves: version %d, %q and %q", rec.Version, rec.Cause, rec.Owner)
				}
				seen++
			}
			if seen != n {
				return fmt.Errorf("saw %d of %d records", seen, n)
			}
		}
		return nil
	}
	for _, err := range together(2*n, func(i int) error {
		if i < n {
			return write(i)
		}
		return look()
	}) {
		ok(t, err)
	}
}
