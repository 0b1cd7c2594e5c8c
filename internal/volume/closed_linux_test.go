package volume_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
)

func TestMain(m *testing.M) {
	linuxtest.Main(m, map[string]linuxtest.Func{"tests": linuxtest.Tests})
}

// TestClosedFolder: a folder that its sandbox has closed may hold anything, and is
// removed all the same. Root may look everywhere, so another user runs it.
func TestClosedFolder(t *testing.T) {
	if os.Geteuid() == 0 {
		linuxtest.Again(t, "^TestClosedFolder$")
		return
	}
	for _, mode := range []os.FileMode{0, 0o300, 0o555} {
		d, id, path := folder(t)
		check(t, os.Mkdir(filepath.Join(path, "d"), 0o755))
		check(t, os.Chmod(path, mode))
		f, err := d.Measure(t.Context(), id, plenty)
		check(t, err)
		if f.Unseen != (mode != 0o555) {
			t.Errorf("%v: the folder holds %+v", mode, f)
		}
		check(t, d.Remove(t.Context(), id))
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%v: %v", mode, err)
		}
	}
}
