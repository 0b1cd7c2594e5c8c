package linux_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/linux"
)

func TestReadSmall(t *testing.T) {
	long := filepath.Join(t.TempDir(), "long")
	if err := os.WriteFile(long, []byte(strings.Repeat("x", 10_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := linux.ReadSmall(long); err != nil || string(text) != strings.Repeat("x", 4096) {
		t.Errorf("of a long file it read %d bytes, %v; want a page", len(text), err)
	}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := linux.ReadSmall("/proc/sys/kernel/hostname"); err != nil || string(text) != name+"\n" {
		t.Errorf("the kernel says %q, %v; want %q", text, err, name)
	}
	for path, want := range map[string]error{long + "er": fs.ErrNotExist, filepath.Dir(long): nil} {
		if _, err := linux.ReadSmall(path); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v, want an error (%v)", path, err, want)
		}
	}
}
