package egress_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/egress"
)

func TestHostTrust(t *testing.T) {
	dir := t.TempDir()
	empty, full, huge := filepath.Join(dir, "empty"), filepath.Join(dir, "full"), filepath.Join(dir, "huge")
	for path, text := range map[string]string{empty: "", full: "whom\n\n", huge: strings.Repeat("x", 5<<20)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := egress.HostTrust([]string{"/nowhere", empty, huge, full}); string(got) != "whom\n" {
		t.Errorf("got %.20q", got)
	}
	if got := egress.HostTrust(nil); got != nil {
		t.Errorf("got %q", got)
	}
}
