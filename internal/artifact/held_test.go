package artifact_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/artifact"
)

// TestHeld: what is kept of a tenant is the same for the store that wrote it and for
// one that finds it, and is less after a sweep.
func TestHeld(t *testing.T) {
	dir := t.TempDir()
	cfg := artifact.Config{When: artifact.Always, MaxFiles: 3}
	s := artifact.New(dir, cfg)
	wants := func(s *artifact.Store, acme, other cove.Bytes) {
		t.Helper()
		if a, o := s.Held("acme"), s.Held("other"); a != acme || o != other {
			t.Errorf("of acme %s are kept, of the other %s; want %s and %s", a, o, acme, other)
		}
	}
	wants(s, 0, 0)
	small, large := ran("x", 0), ran(strings.Repeat("y", 5000), 0)
	large.Tenant = "other"
	put(t, s, small)
	wants(s, 4*cove.KiB, 0)
	put(t, artifact.New(dir, cfg), large) // another process
	wants(artifact.New(dir, cfg), 4*cove.KiB, 8*cove.KiB)
	wants(s, 4*cove.KiB, 0) // until the next sweep
	for name, text := range map[string]string{"20261115T093000.250Z_a.json": `{"tenant":["acme"]}`, "20261115T093000.250Z_b.json": "no JSON", "notes": `{"tenant":"acme"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wants(artifact.New(dir, cfg), 4*cove.KiB, 8*cove.KiB)
	for _, name := range []string{"20261115T093000.250Z_a.json", "20261115T093000.250Z_b.json"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	names, _ := files(t, dir)
	for _, name := range names { // older than what follows
		if err := os.Chtimes(filepath.Join(dir, name), time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		put(t, s, small)
	}
	if _, err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	wants(artifact.New(dir, cfg), 12*cove.KiB, 0)
	wants(s, 12*cove.KiB, 0)
}
