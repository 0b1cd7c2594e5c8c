package engine_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

// countingStore counts the records of sessions that are written, and can refuse
// them.
type countingStore struct {
	cove.Store

	puts   atomic.Int64
	refuse atomic.Bool
}

func (s *countingStore) PutSession(ctx context.Context, rec *cove.Session) error {
	if s.refuse.Load() {
		return cove.Errorf(cove.Unavailable, "the disk is full")
	}
	s.puts.Add(1)
	return s.Store.PutSession(ctx, rec)
}

// TestProgramsAreNumberedInBlocks: not every program writes the record, and
// none of many at once gets another's number.
func TestProgramsAreNumberedInBlocks(t *testing.T) {
	w := newWorld(t)
	w.fake.Powers = slices.DeleteFunc(cove.Powers(), func(p cove.Power) bool { return p == cove.PowerResume })
	store := &countingStore{Store: w.store}
	p := w.open(func(c *engine.Config) { c.Store = store }).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	before := store.puts.Load()
	var all sync.WaitGroup
	var mu sync.Mutex
	seen := map[cove.PID]bool{}
	for range 20 {
		all.Go(func() {
			info, err := p.Processes(s.ID).Start(t.Context(), cove.ExecRequest{Line: "true"})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if seen[info.PID] || info.PID < 1 || info.PID > 20 {
				t.Errorf("the number %d was given out", info.PID)
			}
			seen[info.PID] = true
		})
	}
	all.Wait()
	if n := store.puts.Load() - before; n != 1 {
		t.Errorf("20 programs wrote the record %d times", n)
	}
	if got, err := p.Sessions().Get(t.Context(), s.ID); err != nil || got.LastPID != 20 {
		t.Errorf("the last number is %v (%v)", got.LastPID, err)
	}
	_, err := p.Processes(s.ID).Wait(t.Context(), 21)
	wantCode(t, err, cove.NotFound, "")
}

// TestANumberThatIsNotOnTheDiskIsNotGivenOut: after a crash it would be used
// twice.
func TestANumberThatIsNotOnTheDiskIsNotGivenOut(t *testing.T) {
	w := newWorld(t)
	store := &countingStore{Store: w.store}
	p := w.open(func(c *engine.Config) { c.Store = store }).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	store.refuse.Store(true)
	for range 2 {
		_, err := p.Processes(s.ID).Start(t.Context(), cove.ExecRequest{Line: "true"})
		wantCode(t, err, cove.Unavailable, "")
	}
	store.refuse.Store(false)
	if got := background(t, p, s.ID, cove.ExecRequest{Line: "true"}); got.PID != 1 {
		t.Errorf("the first number is %d", got.PID)
	}
}
