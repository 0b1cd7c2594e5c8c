package policy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stubLog is where a program of the real-shell test writes down its argv; the
// test binary stands in for all of them.
const stubLog = "COVE_POLICY_TEST_STUB_LOG"

func TestMain(m *testing.M) {
	if log := os.Getenv(stubLog); log != "" {
		os.Exit(stub(log))
	}
	os.Exit(m.Run())
}

// stub writes one record down: the arguments, with bytes between and behind
// them that no argument holds.
func stub(log string) int {
	f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	args := append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...)
	_, err = f.WriteString(strings.Join(args, "\x1f") + "\x1e")
	if err := f.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
