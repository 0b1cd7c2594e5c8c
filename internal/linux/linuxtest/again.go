//go:build linux

package linuxtest

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// again is the name under which [Main] gets [Tests].
const again = "tests"

// Tests is a child that runs tests of its own binary; [Again] plays it. It
// stands under the name "tests" in the map that [Main] gets.
func Tests(args []string) error {
	return syscall.Exec("/proc/self/exe", append([]string{"again.test"}, args...), os.Environ())
}

var (
	passed = regexp.MustCompile(`(?m)^\s*--- PASS: `)
	// share would be taken for that of the whole run.
	share = regexp.MustCompile(`(?m)^coverage: .*\n`)
)

// Again runs the tests whose names match once more, as an ordinary user, and
// shows what they say: also what they skip. Only root can.
func Again(t *testing.T, run string) {
	t.Helper()
	NeedRoot(t)
	args := []string{"-test.v", "-test.run=" + run}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	if testing.CoverMode() != "" {
		args = append(args, fmt.Sprintf("-test.gocoverdir=/proc/self/fd/%d", counterFD))
	}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return !strings.HasPrefix(v, "COVE_REQUIRE=") && !strings.HasPrefix(v, "COVE_TEST_")
	})
	r := Run(t, Child{Name: again, Args: args, User: true, Env: env})
	t.Logf("as an ordinary user:\n%s%s", share.ReplaceAllString(r.Stdout, ""), r.Stderr)
	if !r.State.Success() || !passed.MatchString(r.Stdout) {
		t.Errorf("as an ordinary user: %s", r.State)
	}
}
