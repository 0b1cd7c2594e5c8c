//go:build linux

package gvisor_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/provider/gvisor"
	"github.com/cove-sandbox/cove/provider/providertest"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

func TestMain(m *testing.M) {
	if escape.Summoned(os.Args) {
		syscall.Exit(escape.Main(os.Args[1:])) // at once: the race detector would sleep first
	}
	linuxtest.Main(m, map[string]linuxtest.Func{"tests": linuxtest.Tests, "settings": settings})
}

// The paths of executables that tests need, by environment variables: scripts/test.sh
// sets them. Without one, the runtime is that of this build.
const (
	agentVariable = "COVE_TEST_AGENT"
	runscVariable = "COVE_TEST_RUNSC"
)

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
	c := gvisor.Config{Dir: providertest.Dir(t), Agent: program.Agent(t)}
	c.SetOwn(os.Getenv(runscVariable))
	return c
}

func open(t *testing.T) cove.Provider {
	t.Helper()
	return openWith(t, nil)
}
