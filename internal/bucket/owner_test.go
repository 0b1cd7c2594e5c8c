package bucket_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/archive/archivetest"
	"github.com/cove-sandbox/cove/internal/bucket"
)

// TestOwner opens a place for one owner and then for another: the second is told whose
// it is, and finds it his once the mark is gone.
func TestOwner(t *testing.T) {
	onEach(t, func(t *testing.T, r rig) {
		first := open(t, r.url)
		id := cove.NewID()
		put(t, first, id, "files")
		cfg := config(t)
		cfg.Owner = "another"
		_, err := bucket.Open(t.Context(), r.url, cfg)
		refused(t, "another owner", err, cove.Conflict, `belong to another server: the object owner there says "tests", and this one is "another"`)
		if got := archivetest.Content(t, open(t, r.url), id); got != "files" {
			t.Errorf("the same owner reads %q", got)
		}

		check(t, os.Remove(filepath.Join(r.dir, "owner")))
		refused(t, "without a mark", listed(t, first), cove.Conflict, "is gone from")
		second, err := bucket.Open(t.Context(), r.url, cfg)
		check(t, err)
		check(t, listed(t, second))
		check(t, second.Close())
		refused(t, "who had it before", listed(t, first), cove.Conflict, `says "another"`)
	})
}

// listed is how a list of archives ends.
func listed(t *testing.T, a *bucket.Archives) (err error) {
	t.Helper()
	for _, err = range a.List(t.Context()) {
	}
	return err
}
