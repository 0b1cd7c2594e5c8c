//go:build linux

package microsandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// leanAgent is the executable that is put into machines. It is built once, unless
// COVE_TEST_AGENT names one.
var leanAgent = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("COVE_TEST_AGENT"); path != "" {
		return path, nil
	}
	return build("cove-agent", "../../cmd/cove-agent")
})

var (
	builtMu sync.Mutex
	built   []string // directories, which go when all tests have ended; guarded by builtMu
)

// build makes an executable in a directory of its own.
func build(name, from string) (string, error) {
	dir, err := os.MkdirTemp("", name+"-*")
	if err != nil {
		return "", err
	}
	builtMu.Lock()
	built = append(built, dir)
	builtMu.Unlock()
	file := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, from)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return file, nil
}

// agent builds the agent.
func agent(t *testing.T) string {
	t.Helper()
	path, err := leanAgent()
	if err != nil {
		t.Fatalf("build the agent: %v", err)
	}
	return path
}
