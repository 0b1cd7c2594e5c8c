//go:build linux

package gvisor_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/gvisor"
	"github.com/cove-sandbox/cove/provider/providertest"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

func TestMain(m *testing.M) {
	if escape.Summoned(os.Args) {
		syscall.Exit(escape.Main(os.Args[1:])) // at once: the race detector would sleep first
	}
	linuxtest.Main(m, map[string]linuxtest.Func{"tests": linuxtest.Tests})
}

// The paths of executables that tests need, by environment variables: scripts/test.sh
// sets them. Without, the agent is built, and the runtime is that of this build.
const (
	agentVariable = "COVE_TEST_AGENT"
	runscVariable = "COVE_TEST_RUNSC"
)

// agent is an agent that needs no library: the tests themselves are no such
// executable under the race detector.
var agent = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(agentVariable); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "cove-agent-*")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "cove-agent")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "github.com/cove-sandbox/cove/cmd/cove-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, err
})

func agentFile(t *testing.T) string {
	t.Helper()
	path, err := agent()
	if err != nil {
		t.Fatalf("build the agent: %v", err)
	}
	return path
}

// shared copies an executable to where every user can reach it.
func shared(t *testing.T, path string) string {
	t.Helper()
	if path == "" {
		return ""
	}
	image, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "cove-shared-*") //nolint:usetesting // which others cannot reach
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	to := filepath.Join(dir, filepath.Base(path))
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(to, image, 0o600), os.Chmod(to, 0o755)); err != nil {
		t.Fatal(err)
	}
	return to
}

// config is for a provider that is the same whenever it is asked for with one t.
func config(t *testing.T) gvisor.Config {
	t.Helper()
	c := gvisor.Config{Dir: providertest.Dir(t), Agent: agentFile(t)}
	c.SetOwn(os.Getenv(runscVariable))
	return c
}

func open(t *testing.T) cove.Provider {
	t.Helper()
	return openWith(t, nil)
}
