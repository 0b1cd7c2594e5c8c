package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/store/sqlite"
	"github.com/cove-sandbox/cove/store/storetest"
)

func openIn(t *testing.T, dir string) cove.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(dir, "cove.db"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) cove.Store { return openIn(t, t.TempDir()) })
}

func TestDurable(t *testing.T) { storetest.RunDurable(t, openIn) }
