package gvisor_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/gvisor"
)

func TestHomesOfATemplateStandBesideTheWorkspace(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"usr/bin", "home/user", "home/node/app"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(top, "usr/bin/x"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	links, binds, err := gvisor.DrawnTree(top)
	if err != nil {
		t.Fatal(err)
	}
	if got := links[cove.HomePath]; got != cove.WorkspacePath {
		t.Errorf("%s leads to %q", cove.HomePath, got)
	}
	if !slices.Contains(binds, "/home/node") || slices.Contains(binds, "/home") || slices.Contains(binds, cove.HomePath) {
		t.Errorf("shown are %v", binds)
	}
	for n := range 70 {
		if err := os.Mkdir(filepath.Join(top, "home", string(rune('A'+n))), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err = gvisor.DrawnTree(top)
	if cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("a tree with 72 homes: %v", err)
	}
}
