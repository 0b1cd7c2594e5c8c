//go:build linux

// Package linuxtest runs tests of kernel features: in processes of their own,
// as root and as an ordinary user, and with a look at what they leave behind.
//
// Only tests import it. It must not change the process or the host that the
// tests run on.
package linuxtest

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/linux"
)

// Need goes on when err is nil. Otherwise this host lacks what the test is
// about: the test is skipped, or fails where COVE_REQUIRE names local.
func Need(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if slices.Contains(strings.Split(os.Getenv("COVE_REQUIRE"), ","), "local") {
		t.Fatalf("COVE_REQUIRE names local, and this host lacks: %v (%s)", err, linux.RemedyOf(err))
	}
	t.Skipf("this host lacks: %v", err)
}

// NeedRoot skips the test for an ordinary user. It never fails: tests are run
// by both.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can do this")
	}
}

// Users runs a test as root, where the tests are, and as an ordinary user. The
// test hands user on to [Child].
func Users(t *testing.T, test func(t *testing.T, user bool)) {
	t.Run("root", func(t *testing.T) {
		NeedRoot(t)
		test(t, false)
	})
	t.Run("user", func(t *testing.T) { test(t, true) })
}
