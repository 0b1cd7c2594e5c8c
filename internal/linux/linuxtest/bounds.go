//go:build linux

package linuxtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// MemoryBounds returns the bounds on memory of the control groups in and below the one
// with a name, by their paths in it; "." is itself. A group without a bound is not there.
func MemoryBounds(t testing.TB, name string) map[string]int64 {
	t.Helper()
	bounds := map[string]int64{}
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || d.Name() != name {
			return nil //nolint:nilerr // groups come and go
		}
		_ = filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.Name() != "memory.limit_in_bytes" && d.Name() != "memory.max" {
				return nil //nolint:nilerr // as above
			}
			text, err := os.ReadFile(file)
			n, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			if err == nil && bad == nil && n < 1<<62 { // otherwise there is none
				below, _ := filepath.Rel(path, filepath.Dir(file))
				bounds[below] = n
			}
			return nil
		})
		return filepath.SkipDir
	})
	if err != nil {
		t.Fatal(err)
	}
	return bounds
}

// OneMemoryBound demands that there is one group for the sandbox below the one with a
// name, that its bound is the memory of the sandbox, and that all has a bound together.
func OneMemoryBound(t testing.TB, name string, together, sandbox int64) {
	t.Helper()
	bounds := MemoryBounds(t, name)
	if bounds["."] != together {
		t.Errorf("all sandboxes together have %d bytes of memory, want %d", bounds["."], together)
	}
	delete(bounds, ".")
	for path, n := range bounds {
		if n == sandbox && len(bounds) == 1 {
			return
		}
		t.Logf("%s has %d bytes", path, n)
	}
	t.Errorf("the sandbox has not the one bound of %d bytes", sandbox)
}
