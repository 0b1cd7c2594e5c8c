package upgradetest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove/internal/testkit/program"
)

// TestMain removes the executables that the tests share.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(program.Exit))
}

// The versions of cove that a cluster is upgraded between.
const (
	older = "v1.0.0-older"
	newer = "v1.0.0-newer"
)

// executable returns a cove of a version. The gate has one executable for both versions:
// it builds none.
func executable(t *testing.T, version string) string {
	t.Helper()
	if testing.Short() {
		return program.Cove(t)
	}
	return program.Version(t, version)
}
