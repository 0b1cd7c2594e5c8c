package pyrun_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/talk/talktest"
	"github.com/cove-sandbox/cove/internal/testkit/program"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(program.Exit)) }

// host is a place without a sandbox around it: enough of one for an interpreter.
type host struct {
	*talktest.Host

	python string // in place of python3
	memory string // of an interpreter, in KiB, as ulimit has it; "": no bound
	flags  []string
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{Host: talktest.New(t), python: "/usr/bin/python3"}
	if err := exec.Command(h.python, "-I", "-c", "import pandas").Run(); err != nil {
		if os.Getenv("COVE_REQUIRE") != "" {
			t.Fatalf("%s cannot import pandas: %v", h.python, err)
		}
		t.Skip("there is no /usr/bin/python3 with pandas")
	}
	return h
}

// Start implements [cove.Starter].
func (h *host) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	if cmd.Argv[0] == "python3" {
		cmd.Argv = slices.Concat([]string{h.python}, h.flags, cmd.Argv[1:])
		if h.memory != "" {
			cmd.Argv = append([]string{"/bin/sh", "-c", "ulimit -v " + h.memory + ` && exec "$@"`, "sh"}, cmd.Argv...)
		}
	}
	if cmd.Dir == cove.WorkspacePath {
		cmd.Dir = ""
	}
	return h.Host.Start(ctx, cmd)
}
