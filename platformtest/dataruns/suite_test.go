package dataruns_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/platformtest/dataruns"
)

// chosen is the variable that makes TestChosen run groups of the suite.
const chosen = "DATARUNS_GROUPS"

// empty is a harness without a platform.
type empty struct{ t *testing.T }

func (e empty) As(cove.Principal) cove.Platform {
	e.t.Skip("there is no platform here")
	return nil
}

func (empty) Provider() string       { return "none" }
func (empty) Told() (string, string) { return "", "" }
func (empty) Close()                 {}

// TestChosen runs the groups that the variable names, when TestChoice asks for it.
func TestChosen(t *testing.T) {
	names, ok := os.LookupEnv(chosen)
	if !ok {
		return
	}
	dataruns.Run(t, func(t *testing.T, s dataruns.Setup) dataruns.Harness {
		t.Helper()
		if s.Fault != "" {
			t.Skip("there is no platform with a fault here")
		}
		return empty{t}
	}, strings.Fields(names)...)
}

// TestChoice runs TestChosen in a process of its own, where it may fail.
func TestChoice(t *testing.T) {
	for name, c := range map[string]struct{ groups, pattern, want string }{
		"an unknown group": {"sql polices", "^TestChosen$", `no group "polices"; its groups are ` + strings.Join(dataruns.Groups(), ", ")},
		"no case":          {"sql", "^TestChosen$/^chat$", "no case of the suite was run"},
		"all skipped":      {"faults", "^TestChosen$", "no case of the suite was run"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+c.pattern, "-test.v")
			cmd.Env = append(os.Environ(), chosen+"="+c.groups)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.want) {
				t.Errorf("it ended with %v; want %q in\n%s", err, c.want, out)
			}
		})
	}
}
