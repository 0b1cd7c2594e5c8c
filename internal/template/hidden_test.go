package template_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cove-sandbox/cove/internal/template"
)

// TestSettingsOfAHostAreOutOfReach: what has credentials beside programs is named, also
// where a link leads to it, and nothing that is not shown.
func TestSettingsOfAHostAreOutOfReach(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"etc", "usr/share/settings", "usr/local", "usr/lib/node_modules/npm", "opt/node/etc", "opt/python"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"usr/pip.conf", "usr/lib/node_modules/npm/npmrc", "opt/node/etc/npmrc", "opt/node/etc/other", "opt/other.conf"} {
		if err := os.WriteFile(filepath.Join(top, file), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("../share/settings", filepath.Join(top, "usr/local/etc")), os.Symlink("../etc", filepath.Join(top, "usr/etc")),
		os.Symlink("../other.conf", filepath.Join(top, "opt/python/pip.conf"))); err != nil {
		t.Fatal(err)
	}
	dirs, files := template.HostSettings(top, "/opt/node", "/opt/python")
	if want := []string{"/usr/share/settings"}; !slices.Equal(dirs, want) {
		t.Errorf("directories %q, want %q", dirs, want)
	}
	if want := []string{"/usr/pip.conf", "/opt/node/etc/npmrc"}; !slices.Equal(files, want) {
		t.Errorf("files %q, want %q", files, want)
	}
	if dirs, files := template.HostSettings(t.TempDir()); len(dirs)+len(files) > 0 {
		t.Errorf("a host without any has %q and %q", dirs, files)
	}
}
