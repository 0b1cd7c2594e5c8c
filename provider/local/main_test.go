//go:build linux

package local_test

import (
	"os"
	"testing"

	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

func TestMain(m *testing.M) {
	if escape.Summoned(os.Args) {
		os.Exit(escape.Main(os.Args[1:]))
	}
	local.Main()
	linuxtest.Main(m, map[string]linuxtest.Func{
		"tests": linuxtest.Tests, "becomes": becomes, "poor": poor, "crash": crash, "submount": submount,
	})
}
