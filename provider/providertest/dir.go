package providertest

import (
	"sync"
	"testing"
)

var (
	dirsMu sync.Mutex
	dirs   = map[*testing.T]string{} // guarded by dirsMu
)

// Dir returns a directory for the state of a provider: the same one whenever
// it is asked with the same t, so that a provider can be opened again on what
// an earlier one left. It is removed when the test ends.
func Dir(t *testing.T) string {
	t.Helper()
	dirsMu.Lock()
	defer dirsMu.Unlock()
	if dir, ok := dirs[t]; ok {
		return dir
	}
	dir := t.TempDir()
	dirs[t] = dir
	t.Cleanup(func() {
		dirsMu.Lock()
		defer dirsMu.Unlock()
		delete(dirs, t)
	})
	return dir
}
