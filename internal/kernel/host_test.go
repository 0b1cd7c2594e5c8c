package kernel_test

import (
	"bytes"
	"context"
	"maps"
	"os/exec"
	"slices"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/talk/talktest"
)

// host starts programs on this host, in a directory of the test. It is enough of a
// sandbox for an interpreter, and holds nothing back.
type host struct {
	*talktest.Host

	bin string // a directory whose programs come first
	// refuse makes every start fail.
	refuse error
	// instead is what is started in place of everything.
	instead []string
}

func newHost(t testing.TB) *host { return &host{Host: talktest.New(t)} }

// Start implements [cove.Starter].
func (h *host) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	if h.refuse != nil {
		return nil, h.refuse
	}
	cmd.Argv = slices.Clone(cmd.Argv)
	if h.instead != nil {
		cmd.Argv = h.instead
	}
	if cmd.Argv[0] == "python3" {
		cmd.Argv[0] = "/usr/bin/python3" // what sandboxes see; the one in PATH may be a script
	}
	if h.bin != "" {
		cmd.Env = maps.Clone(cmd.Env)
		if cmd.Env == nil {
			cmd.Env = map[string]string{}
		}
		cmd.Env["PATH"] = h.bin + ":/usr/bin:/bin"
	}
	return h.Host.Start(ctx, cmd)
}

// heard collects what code writes.
type heard struct {
	mu       sync.Mutex
	out, err bytes.Buffer
	all      bytes.Buffer // both, in order
	bytes    int64
	keep     int // of each, in bytes; 0: all
}

func (h *heard) hear(c cove.Chunk) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes += int64(len(c.Data))
	if h.keep > 0 && h.all.Len() > h.keep {
		return
	}
	h.all.Write(c.Data)
	if c.Stream == cove.Stderr {
		h.err.Write(c.Data)
		return
	}
	h.out.Write(c.Data)
}

func (h *heard) stdout() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.out.String()
}

// bench is one interpreter under test.
type bench struct {
	t    *testing.T
	host *host
	k    cove.Kernel
}

// need skips a test where a program of the host is missing.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed: %v", program, err)
	}
}
