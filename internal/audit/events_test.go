package audit_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/audit"
)

func TestEventsAreFiltered(t *testing.T) {
	dir := newDir(t)
	all := fill(t, dir, 60)
	j := mustOpen(t, audit.Config{Dir: dir, SegmentBytes: 2 * cove.KiB})
	all = append(all, mustAppend(t, j, cove.Event{Kind: "session.open", Session: "s1", Tenant: "tenant1"}))
	for name, f := range map[string]cove.EventFilter{
		"all":             {},
		"tenant":          {Tenant: "tenant1"},
		"session":         {Session: "s1"},
		"kind":            {Kind: "session.open"},
		"kind prefix":     {Kind: "process."},
		"none":            {Kind: "nothing"},
		"after 0":         {After: 0, Limit: 3},
		"after 30":        {After: 30},
		"after the last":  {After: 61},
		"after any":       {After: 1<<63 - 1},
		"limit":           {Limit: 7, After: 13},
		"limit and match": {Limit: 2, Tenant: "tenant2", After: 20},
	} {
		t.Run(name, func(t *testing.T) {
			var want []cove.Event
			for _, e := range all {
				if f.Match(&e) && (f.Limit == 0 || len(want) < f.Limit) {
					want = append(want, e)
				}
			}
			if got := collect(t, j.Events(t.Context(), f)); !cmp.Equal(want, got) {
				t.Error(cmp.Diff(want, got))
			}
			if got := collect(t, audit.Read(t.Context(), dir, f)); !cmp.Equal(want, got) {
				t.Error(cmp.Diff(want, got))
			}
		})
	}
}

func TestEventsCanBeLeftEarly(t *testing.T) {
	dir := newDir(t)
	fill(t, dir, 10)
	for e, err := range audit.Read(t.Context(), dir, cove.EventFilter{}) {
		if err != nil || e.Seq > 2 {
			t.Fatalf("got line %d, %v after a break", e.Seq, err)
		}
		if e.Seq == 2 {
			break
		}
	}
}

func TestFollowersSeeEveryLine(t *testing.T) {
	j := mustOpen(t, audit.Config{Dir: newDir(t), SegmentBytes: 4 * cove.KiB})
	const lines = 300
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var followers sync.WaitGroup
	for range 4 {
		followers.Go(func() {
			var next int64 = 1
			for e, err := range j.Events(ctx, cove.EventFilter{Follow: true}) {
				if err != nil || e.Seq != next {
					t.Errorf("got line %d, %v; want %d", e.Seq, err, next)
					return
				}
				if next++; next > lines {
					return
				}
			}
			t.Errorf("the follower ended before line %d", next)
		})
	}
	var writers sync.WaitGroup
	for range 3 {
		writers.Go(func() {
			for i := range lines / 3 {
				e := sample(i)
				if err := j.Append(t.Context(), &e, false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	followers.Wait()
}

func TestFollowEndsWithItsContextOrTheJournal(t *testing.T) {
	j := mustOpen(t, audit.Config{Dir: newDir(t)})
	mustAppend(t, j, sample(1))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for e, err := range j.Events(ctx, cove.EventFilter{Follow: true}) {
		if err != nil || e.Seq != 1 {
			t.Fatalf("got line %d, %v", e.Seq, err)
		}
		cancel()
	}

	limited := collect(t, j.Events(t.Context(), cove.EventFilter{Follow: true, Limit: 1}))
	if len(limited) != 1 {
		t.Errorf("a limit of 1 gave %d lines", len(limited))
	}

	var last error
	for e, err := range j.Events(t.Context(), cove.EventFilter{Follow: true}) {
		if last = err; err == nil && e.Seq == 1 {
			mustClose(t, j)
		}
	}
	wantCode(t, last, cove.Unavailable, "closed")
}

func TestReadingEndsWithItsContext(t *testing.T) {
	dir := newDir(t)
	fill(t, dir, 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range audit.Read(ctx, dir, cove.EventFilter{}) {
		wantCode(t, err, cove.Canceled)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v does not hold its cause", err)
		}
	}
	_, err := audit.Verify(ctx, dir)
	wantCode(t, err, cove.Canceled)
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	first := func(dir string, f cove.EventFilter) error {
		for _, err := range audit.Read(t.Context(), dir, f) {
			return err
		}
		return nil
	}
	wantCode(t, first(newDir(t), cove.EventFilter{}), cove.NotFound, "no journal")
	wantCode(t, first(newDir(t), cove.EventFilter{Follow: true}), cove.Invalid, "follow")
	if err := first(t.TempDir(), cove.EventFilter{}); err != nil {
		t.Errorf("an empty folder gave %v", err)
	}
	notDir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(notDir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantCode(t, first(notDir, cove.EventFilter{}), cove.Unavailable)
}

func TestReadStopsAtDamage(t *testing.T) {
	for name, damage := range map[string]func(segments []string) error{
		"a line":         func(s []string) error { return edit(s[1], func(b []byte) []byte { b[0] = 'x'; return b }) },
		"a torn segment": func(s []string) error { return edit(s[1], func(b []byte) []byte { return b[:len(b)-5] }) },
		"no segment":     func(s []string) error { return os.Remove(s[1]) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := newDir(t)
			fill(t, dir, 40)
			if err := damage(segmentFiles(t, dir)); err != nil {
				t.Fatal(err)
			}
			j := mustOpen(t, audit.Config{Dir: dir})
			for _, events := range []func(func(cove.Event, error) bool){
				j.Events(t.Context(), cove.EventFilter{}), audit.Read(t.Context(), dir, cove.EventFilter{}),
			} {
				var last error
				for _, err := range events {
					last = err
				}
				wantCode(t, last, cove.Unavailable, "cove audit verify")
			}
			mustClose(t, j)
		})
	}
}

func TestEventsWithoutSegmentsIsAnError(t *testing.T) {
	dir := newDir(t)
	j := mustOpen(t, audit.Config{Dir: dir})
	for _, name := range segmentFiles(t, dir) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range j.Events(t.Context(), cove.EventFilter{}) {
		wantCode(t, err, cove.Unavailable, "missing")
	}
}

func segmentFiles(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "journal-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func edit(name string, change func([]byte) []byte) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return replace(name, change(data))
}

// replace makes a new file: ext4 syncs one that is overwritten, which is slow.
func replace(name string, data []byte) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(name, data, 0o600)
}
