package userns_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cove-sandbox/cove/internal/linux/userns"
)

func TestMapped(t *testing.T) {
	for text, want := range map[string]bool{
		"         0          0 4294967295\n": true,
		"0 100000 1900100000\n":              true,
		"1000 0 1\n0 100000 2000000000\n":    true,
		"0 0 1900099999\n":                   false,
		"0 1000 1\n":                         false,
		"1 0 4294967294\n":                   false,
		"0 0\nx 0 2000000000\n0 0 -1\n":      false,
		"":                                   false,
	} {
		file := filepath.Join(t.TempDir(), "map")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := userns.Mapped(file); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
	if userns.Mapped("/no/such/map") {
		t.Error("nothing maps all users")
	}
}
