package cove_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestLean keeps what only a server needs out of the lean program, whose start
// is what people wait for: docs/decisions/011-a-lean-program-around-the-whole-one.md.
func TestLean(t *testing.T) {
	// With -e, because the whole program that the lean one carries is not there.
	out, err := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "-tags", "lean", "./cmd/cove").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if !strings.Contains(string(out), "/provider/local\n") {
		t.Fatal("go list does not know the lean program")
	}
	for dep := range strings.Lines(string(out)) {
		dep = strings.TrimSpace(dep)
		for _, heavy := range []string{"net/http", "crypto/tls", "github.com/prometheus/", "github.com/moby/", "gvisor.dev/", "go.opentelemetry.io/", "modernc.org/sqlite", "github.com/cove-sandbox/cove/internal/chat", "github.com/cove-sandbox/cove/internal/duckexe", "github.com/cove-sandbox/cove/internal/gvisorexe", "github.com/cove-sandbox/cove/internal/telemetry"} {
			if strings.HasPrefix(dep, heavy) {
				t.Errorf("the lean program links %s. Begin the file that imports it with //go:build !lean.", dep)
			}
		}
	}
}
