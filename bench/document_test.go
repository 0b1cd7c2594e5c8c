package main

import (
	"os"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/measure"
)

// TestTheDocumentShowsTheCommand keeps the page from telling of another
// bubblewrap than the one that is measured.
func TestTheDocumentShowsTheCommand(t *testing.T) {
	text, err := os.ReadFile("../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "\\\n", " ")), " ")
	if want := strings.Join(measure.Bubblewrap(), " "); !strings.Contains(shown, want) {
		t.Errorf("docs/benchmarks.md lacks the command\n%s", want)
	}
}
