//go:build linux

package microsandbox_test

import (
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/provider/microsandbox"
	"github.com/cove-sandbox/cove/provider/microsandbox/msbtest"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

// standIn is the first argument by which this executable plays msb; the second is
// where the machines are.
const standIn = "play-msb"

// programUser is who programs are in the machines of tests: nobody else on this
// host is that, so that its processes can be counted.
const programUser = 61117

func TestMain(m *testing.M) {
	if escape.Summoned(os.Args) { // TestLive copies this executable into virtual machines
		syscall.Exit(escape.Main(os.Args[1:]))
	}
	if len(os.Args) > 2 && os.Args[1] == standIn {
		code, err := msbtest.Call(os.Args[2], os.Args[3:], os.Stdin, os.Stdout, os.Stderr)
		if err != nil {
			code = 1
		}
		syscall.Exit(code)
	}
	microsandbox.SetUser(programUser)
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	program.Exit(code)
}
