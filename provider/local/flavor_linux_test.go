//go:build linux

package local_test

import (
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// TestMemoryIsOneNumber: the bound of the control group is the memory that was asked for,
// with a workspace in memory, and the group around it bounds all sandboxes together.
func TestMemoryIsOneNumber(t *testing.T) {
	cfg := config(t.TempDir())
	const around, together = "covetest-around-local", 3 * cove.GiB
	cfg.Around, cfg.Together = around, together
	linuxtest.NoLeaks(t, around)
	p, err := local.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	providertest.OneMemory(t, p, func(memory cove.Bytes) { linuxtest.OneMemoryBound(t, around, int64(together), int64(memory)) })
}
