//go:build linux

package gvisorexe_test

import (
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/gvisorexe"
)

// A test is a plain build.
func TestPlainBuildHasNone(t *testing.T) {
	path, err := gvisorexe.Installed(t.TempDir())
	if path != "" || cove.CodeOf(err) != cove.Unavailable {
		t.Fatalf("%q, %v", path, err)
	}
	if r := cove.RemedyOf(err); !strings.Contains(r, "make build") || !strings.Contains(r, "COVE_GVISOR_RUNSC") {
		t.Errorf("the remedy is %q", r)
	}
}
