//go:build linux

package local_test

import (
	"testing"

	"github.com/cove-sandbox/cove/internal/kernel"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

// TestEscapesThroughKernels makes attacks from inside an interpreter that remembers:
// by a program that its code starts, and by a fork of itself that becomes one.
func TestEscapesThroughKernels(t *testing.T) {
	if tried := withstand(t, open(t), escape.Options{Via: []escape.Via{escape.Kernel}, Kernels: kernel.New()}); tried < 40 {
		t.Errorf("only %d attacks were made", tried)
	}
}
