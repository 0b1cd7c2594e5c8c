package platformtest_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/platformtest"
)

// chosen is the variable that makes TestChosen run groups of the suite.
const chosen = "PLATFORMTEST_GROUPS"

// opened is the variable that makes TestChosen open an empty platform.
const opened = "PLATFORMTEST_OPEN"

// empty is a harness without a platform.
type empty struct{ t *testing.T }

func (e empty) As(cove.Principal) cove.Platform {
	e.t.Skip("the platform is empty")
	return nil
}

func (empty) Restart() error              { return errors.ErrUnsupported }
func (empty) Extras() platformtest.Extras { return platformtest.Extras{} }
func (empty) Close()                      {}

// TestChosen runs the groups that the variable names, when TestChoice asks for it. Every
// case is skipped.
func TestChosen(t *testing.T) {
	names, ok := os.LookupEnv(chosen)
	if !ok {
		return
	}
	platformtest.Run(t, func(t *testing.T, _ platformtest.Options) platformtest.Harness {
		if os.Getenv(opened) == "" {
			t.Skip("there is no platform here")
		}
		return empty{t}
	}, strings.Fields(names)...)
}

// TestChoice runs TestChosen in a process of its own, where it may fail.
func TestChoice(t *testing.T) {
	for name, c := range map[string]struct {
		groups, pattern, open string
		fails                 bool
		want                  string
	}{
		"no platform":      {"exec queue", "^TestChosen$", "", false, "--- SKIP: TestChosen/queue"},
		"all skipped":      {"exec queue", "^TestChosen$", "yes", true, "all were skipped"},
		"an unknown group": {"exec language", "^TestChosen$", "", true, `no group "language"; its groups are ` + strings.Join(platformtest.Groups(), ", ")},
		"no case":          {"exec", "^TestChosen$/^queue$", "", true, "no case of the suite was run"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+c.pattern, "-test.v")
			cmd.Env = append(os.Environ(), chosen+"="+c.groups, opened+"="+c.open)
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.fails || !strings.Contains(string(out), c.want) {
				t.Errorf("it ended with %v; want %q in\n%s", err, c.want, out)
			}
		})
	}
}
