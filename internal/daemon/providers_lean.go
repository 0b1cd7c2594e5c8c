//go:build lean

package daemon

import (
	"path/filepath"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/provider/local"
)

// ProviderNames returns the words that SANDBOX_PROVIDER may be: those of the
// whole program. A test compares them.
func ProviderNames() []string {
	return []string{"docker", "e2b", "fake", "gvisor", leanProvider, "microsandbox"}
}

// leanProvider is the one that the lean program has.
const leanProvider = "local"

// Here reports whether this program has all providers that a run may need; the
// whole one always has.
func Here(names ...string) bool {
	for _, name := range names {
		if name != "" && name != leanProvider {
			return false
		}
	}
	return true
}

// opening returns how to open each provider below a directory.
func opening(_ config.Config, at provision) (map[string]func() (cove.Provider, error), error) {
	return map[string]func() (cove.Provider, error){leanProvider: func() (cove.Provider, error) {
		p, err := local.New(local.Config{Dir: filepath.Join(at.dir, leanProvider), Once: at.once})
		if err != nil {
			return nil, err
		}
		return p, nil
	}}, nil
}
