//go:build linux

package e2b_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

func TestMain(m *testing.M) {
	if escape.Summoned(os.Args) {
		syscall.Exit(escape.Main(os.Args[1:])) // at once: the race detector would sleep first
	}
	local.Main()
	code := m.Run()
	if boxes.Provider != nil {
		if err := boxes.Close(); err != nil {
			_, _ = os.Stderr.WriteString("close the machines: " + err.Error() + "\n")
			code = 1
		}
	}
	for _, dir := range []string{built.dir, boxes.dir} {
		if dir != "" {
			_ = os.RemoveAll(dir)
		}
	}
	os.Exit(code)
}

// boxes is what machines are made of: sandboxes of this machine, for all tests.
var boxes struct {
	*local.Provider
	sync.Once

	dir string
	err error
}

func machines(t *testing.T) cove.Provider {
	t.Helper()
	boxes.Do(func() {
		if boxes.dir, boxes.err = os.MkdirTemp("", "e2b-machines-*"); boxes.err != nil { //nolint:usetesting // it is for all tests
			return
		}
		boxes.Provider, boxes.err = local.New(local.Config{Dir: boxes.dir, Agent: agent(t)})
	})
	if boxes.err != nil {
		t.Fatalf("machines: %v", boxes.err)
	}
	caps, err := boxes.Probe(t.Context())
	if err != nil {
		t.Fatalf("machines: %v", err)
	}
	providertest.Require(t, boxes.Name(), caps)
	return boxes.Provider
}

// built is the agent that machines get.
var built struct {
	sync.Once

	dir, path string
	err       error
}

// agent returns a static agent: the one that the tests of the whole module share,
// or one that is built now.
func agent(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("COVE_TEST_AGENT"); path != "" {
		return path
	}
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "e2b-agent-*"); built.err != nil { //nolint:usetesting // it is for all tests
			return
		}
		built.path = filepath.Join(built.dir, "cove-agent")
		cmd := exec.Command("go", "build", "-o", built.path, "../../cmd/cove-agent")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		built.err = cmd.Run()
	})
	if built.err != nil {
		t.Fatalf("build the agent: %v", built.err)
	}
	return built.path
}
