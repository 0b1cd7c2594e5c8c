package analyze_test

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/talk/talktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host is a place without a sandbox around it.
type host struct {
	*talktest.Host

	python string // in place of python3
	refuse error  // what Start says
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{Host: talktest.New(t), python: "/usr/bin/python3"}
	if _, err := os.Stat(h.python); err != nil {
		if os.Getenv("COVE_REQUIRE") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no /usr/bin/python3")
	}
	return h
}

// Start implements [cove.Starter].
func (h *host) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	if h.refuse != nil {
		return nil, h.refuse
	}
	cmd.Argv = append([]string{h.python}, cmd.Argv[1:]...)
	return h.Host.Start(ctx, cmd)
}
