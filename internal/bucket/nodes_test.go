package bucket_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/archive/archivetest"
	"github.com/cove-sandbox/cove/internal/bucket"
)

// settled opens archives whose store is in the middle of a half hour, so that none
// ends while a test counts blobs.
func settled(t *testing.T, url string, later time.Duration) *bucket.Archives {
	t.Helper()
	a := open(t, url)
	a.Later(middle() + later)
	return a
}

var middle = sync.OnceValue(func() time.Duration {
	now := time.Now()
	return now.Truncate(30 * time.Minute).Add(15 * time.Minute).Sub(now)
})

// TestNodes stores at one node and reads at another.
func TestNodes(t *testing.T) {
	onEach(t, func(t *testing.T, r rig) {
		one, two := settled(t, r.url, 0), settled(t, r.url, 0)
		a, b, c := cove.NewID(), cove.NewID(), cove.NewID()
		put(t, one, a, "the same")
		put(t, two, b, "the same")
		put(t, two, c, "others")
		r.files(t, "blobs", 2)
		if got := archivetest.Content(t, two, a); got != "the same" {
			t.Errorf("the other node reads %q", got)
		}
		check(t, two.Delete(t.Context(), a))
		if _, err := one.Get(t.Context(), a); !errors.Is(err, cove.NotFound) {
			t.Errorf("deleted at the other node: %v", err)
		}
		want := []cove.ID{b, c}
		slices.Sort(want)
		if got := archivetest.List(t, one); !slices.Equal(got, want) {
			t.Errorf("list is %q", got)
		}
		put(t, one, b, "new")
		if got := archivetest.Content(t, two, b); got != "new" {
			t.Errorf("replaced at the other node: %q", got)
		}
	})
}

// TestSweep removes what nobody refers to, and nothing that is young.
func TestSweep(t *testing.T) {
	onEach(t, func(t *testing.T, r rig) {
		a := open(t, r.url)
		kept, gone := cove.NewID(), cove.NewID()
		put(t, a, kept, "kept")
		put(t, a, gone, "gone")
		check(t, a.Delete(t.Context(), gone))
		sweep(t, a, 0)
		r.files(t, "blobs", 2)

		old := open(t, r.url)
		old.Later(59 * time.Minute)
		sweep(t, old, 0)

		old = open(t, r.url)
		old.Later(2 * time.Hour)
		sweep(t, old, 1)
		sweep(t, old, 0)
		r.files(t, "blobs", 1)
		if got := archivetest.Content(t, a, kept); got != "kept" {
			t.Errorf("what is kept holds %q", got)
		}
	})
}

// TestSweepGoesOn: blobs that are referred to and come first do not keep a sweep from
// those behind them.
func TestSweepGoesOn(t *testing.T) {
	r := newFolder(t)
	a := open(t, r.url)
	a.Batch(2)
	for i := range 12 {
		id := cove.NewID()
		put(t, a, id, fmt.Sprint(i))
		if i%4 == 0 {
			check(t, a.Delete(t.Context(), id))
		}
	}
	a.Later(2 * time.Hour)
	sweep(t, a, 3)
	r.files(t, "blobs", 9)
}

// TestStoredAgain: a stream that was stored a while ago is stored once more, because
// the blob that is there may be about to be swept.
func TestStoredAgain(t *testing.T) {
	onEach(t, func(t *testing.T, r rig) {
		now, later := settled(t, r.url, 0), settled(t, r.url, 31*time.Minute)
		first, second := cove.NewID(), cove.NewID()
		put(t, now, first, "files")
		put(t, now, first, "files")
		r.files(t, "blobs", 1)
		put(t, later, second, "files")
		r.files(t, "blobs", 2)
		check(t, now.Delete(t.Context(), first))

		sweep(t, settled(t, r.url, 90*time.Minute), 1)
		if got := archivetest.Content(t, now, second); got != "files" {
			t.Errorf("got %q", got)
		}
	})
}

// TestSweepAmongWriters has sessions with the same few contents come and go at three
// nodes for hours of the store's time, and sweeps all along: no session that is there
// lacks its files.
func TestSweepAmongWriters(t *testing.T) {
	r := newFolder(t)
	errs := make(chan error, 64)
	for hour := range 4 {
		var wg sync.WaitGroup
		for node := range 3 {
			a := open(t, r.url)
			a.Later(time.Duration(hour)*31*time.Minute + time.Duration(node)*time.Second)
			wg.Go(func() { errs <- comeAndGo(t, a) })
			wg.Go(func() {
				_, err := a.Sweep(t.Context())
				errs <- err
			})
		}
		wg.Wait()
	}
	close(errs)
	for err := range errs {
		check(t, err)
	}
	a := open(t, r.url)
	for id, err := range a.List(t.Context()) {
		check(t, err)
		if got := archivetest.Content(t, a, id); !strings.HasPrefix(got, "content ") {
			t.Errorf("%s holds %q", id, got)
		}
	}
}

func comeAndGo(t *testing.T, a *bucket.Archives) error {
	t.Helper()
	var failed error
	for i := range 12 {
		id := cove.NewID()
		_, err := a.Put(t.Context(), id, strings.NewReader(fmt.Sprintf("content %d", i%3)))
		failed = errors.Join(failed, err)
		if i%4 != 0 {
			failed = errors.Join(failed, a.Delete(t.Context(), id))
		}
	}
	return failed
}

// TestDrafts removes what a writer left that died.
func TestDrafts(t *testing.T) {
	r := newFolder(t)
	a := open(t, r.url)
	draft := filepath.Join(r.dir, "drafts", string(cove.NewID()))
	stranger := filepath.Join(r.dir, "drafts", "notes")
	for _, path := range []string{draft, stranger} {
		check(t, os.WriteFile(path, []byte("half"), 0o600))
	}
	sweep(t, a, 0)
	hours := time.Now().Add(-2 * time.Hour)
	check(t, errors.Join(os.Chtimes(draft, hours, hours), os.Chtimes(stranger, hours, hours)))
	sweep(t, a, 1)
	if got := entries(t, filepath.Join(r.dir, "drafts")); !slices.Equal(got, []string{"notes"}) {
		t.Errorf("left: %q", got)
	}
}
