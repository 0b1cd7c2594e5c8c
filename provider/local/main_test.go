//go:build linux

package local_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

func TestMain(m *testing.M) {
	if escape.Summoned(os.Args) {
		syscall.Exit(escape.Main(os.Args[1:])) // at once: the race detector would sleep first
	}
	local.Main()
	local.HurryAgents()
	linuxtest.Main(m, map[string]linuxtest.Func{
		"tests": linuxtest.Tests, "becomes": becomes, "poor": poor, "crash": crash, "kept": kept, "stacked": stacked, "paused": pausedBox, "unsaved": unsaved, "reaches": reaches, "stranger": stranger, "submount": submount,
		"settings": settings, "abandoned": abandoned,
	})
}
