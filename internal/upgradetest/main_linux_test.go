package upgradetest_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// TestMain removes the executables that the tests share.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if programs.dir != "" {
			_ = os.RemoveAll(programs.dir)
		}
		os.Exit(code)
	}))
}

// The versions of cove that a cluster is upgraded between.
const (
	older = "v1.0.0-older"
	newer = "v1.0.0-newer"
)

// programs are executables of cove by their version. Each is built once.
var programs struct {
	mu    sync.Mutex
	dir   string
	built map[string]bool
}

// program returns a cove that says it is of a version.
func program(t *testing.T, version string) string {
	t.Helper()
	programs.mu.Lock()
	defer programs.mu.Unlock()
	if programs.dir == "" {
		dir, err := os.MkdirTemp("", "cove-upgrade-bin-") //nolint:usetesting // it is for all tests
		if err != nil {
			t.Fatal(err)
		}
		programs.dir, programs.built = dir, map[string]bool{}
	}
	path := filepath.Join(programs.dir, version, "cove")
	if programs.built[version] {
		return path
	}
	const module = "github.com/cove-sandbox/cove"
	build := exec.CommandContext(context.WithoutCancel(t.Context()), "go", "build", "-buildvcs=false",
		"-ldflags", fmt.Sprintf("-s -w -X %s/internal/cli.version=%s", module, version), "-o", path, module+"/cmd/cove")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build cove: %v\n%s", err, out)
	}
	programs.built[version] = true
	return path
}
