package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local"
)

// TestLull: one thread may be late from then on, and none but that.
func TestLull(t *testing.T) {
	linuxtest.NeedRoot(t)
	local.Lull()
	threads, err := filepath.Glob("/proc/self/task/*")
	if err != nil {
		t.Fatal(err)
	}
	late := 0
	for _, thread := range threads {
		file := filepath.Join("/proc", filepath.Base(thread), "timerslack_ns")
		text, err := os.ReadFile(file)
		if err != nil || strings.TrimSpace(string(text)) != local.Drowsy {
			continue // it has ended, or is on time
		}
		late++
		if err := os.WriteFile(file, []byte("0"), 0); err != nil { // which is as before
			t.Error(err)
		}
	}
	if late != 1 {
		t.Errorf("%d of %d threads may be late", late, len(threads))
	}
}
