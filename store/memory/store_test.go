package memory_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/store/memory"
	"github.com/cove-sandbox/cove/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) cove.Store { return memory.New() })
}

// TestNoCase: a pattern that leaves no case of the suite is not a pass.
func TestNoCase(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStore$/^none$").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "the suite ran no case") {
		t.Errorf("%v\n%s", err, out)
	}
}
