package recordcopy_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cove-sandbox/cove/internal/recordcopy"
)

// TestFolder writes, reads, lists and removes copies, in both ways of replacing them, and
// settles what a crash left.
func TestFolder(t *testing.T) {
	for _, gaps := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "copies")
		f, err := recordcopy.Open(dir, gaps, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		for _, version := range []int{1, 2} {
			f.Write(t.Context(), recordcopy.Session, "a", version)
		}
		f.Write(t.Context(), recordcopy.Volume, "b", 1)
		f.Write(t.Context(), recordcopy.Volume, "../c", 1) // it is the name of no file
		f.Remove(t.Context(), recordcopy.Volume, "b")
		for name, data := range map[string]string{
			"session-a.json.draft":  "3",      // the older copy is there
			"session-b.json.draft":  "4",      // the older copy is gone
			"session-c.json.draft":  `{"half`, // it is not whole
			"origin.draft":          "5",      // it is not a copy
			"session-A+B.json":      "6",
			"snapshot-d.json.other": "7",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Settle(); err != nil {
			t.Fatal(err)
		}
		names, err := f.Names()
		if err != nil || len(names) != 1 || !slices.Equal(names[recordcopy.Session], []string{"a", "b"}) {
			t.Errorf("gaps %v: there are %v, %v", gaps, names, err)
		}
		var a, b int
		if !f.Read(recordcopy.Session, "a", &a) || !f.Read(recordcopy.Session, "b", &b) || a != 2 || b != 4 {
			t.Errorf("gaps %v: the copies are %d and %d", gaps, a, b)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "*.draft")); err != nil || len(left) > 0 {
			t.Errorf("gaps %v: drafts are left: %v, %v", gaps, left, err)
		}
	}
}
