//go:build linux

package guest_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
)

// TestTakeOnlyChildren: what is not a child of the agent, nor was put there by the
// host, does not become a program of the sandbox.
func TestTakeOnlyChildren(t *testing.T) {
	everywhere(t, func(t *testing.T, c *guestAt) {
		cmd := func() cove.Command {
			return cove.Command{Argv: []string{"x"}, Stdin: strings.NewReader(""), Stdout: &strings.Builder{}, Stderr: &strings.Builder{}}
		}
		for name, pid := range map[string]int{"none": 0, "the agent": 1, "nobody": 4_000_000} {
			wait, begin, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			plant := func(context.Context, guest.Planted) (int, *os.File, error) { return pid, begin, nil }
			p, err := c.Take(t.Context(), cmd(), plant)
			if cove.CodeOf(err) == cove.Unsupported { // what is copied to the agent: nothing is planted
				_ = begin.Close()
			}
			if err == nil {
				t.Errorf("%s became %v", name, p)
			}
			if told, _ := io.ReadAll(wait); len(told) > 0 {
				t.Errorf("%s was told to begin", name)
			}
			_ = wait.Close()
		}
		refused := errors.New("refused")
		_, err := c.Take(t.Context(), cmd(), func(_ context.Context, p guest.Planted) (int, *os.File, error) {
			if p.Files[0] < 0 || p.Files[1] < 0 || p.Files[2] < 0 || p.Files[1] == p.Files[2] || len(p.Env) == 0 {
				t.Errorf("made with %+v", p)
			}
			return 0, nil, refused
		})
		if !errors.Is(err, refused) && cove.CodeOf(err) != cove.Unsupported {
			t.Errorf("what nobody could make became something: %v", err)
		}
		kept := cmd()
		kept.Keep = "name"
		if _, err := c.Take(t.Context(), kept, nil); cove.CodeOf(err) != cove.Unsupported {
			t.Errorf("kept: %v", err)
		}
		if _, err := c.Take(t.Context(), cove.Command{}, nil); cove.CodeOf(err) != cove.Invalid {
			t.Errorf("nothing: %v", err)
		}
		// The agent goes on.
		if r, out, _ := run(t, c, cove.Command{Argv: []string{"echo", "hi"}}); r.ExitCode != 0 || out != "hi\n" {
			t.Errorf("%+v, %q", r, out)
		}
	})
}
