//go:build linux

package e2b_test

import (
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/testkit/program"
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
	if boxes.dir != "" {
		_ = os.RemoveAll(boxes.dir)
	}
	program.Exit(code)
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
		boxes.Provider, boxes.err = local.New(local.Config{Dir: boxes.dir, Agent: program.Agent(t)})
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
