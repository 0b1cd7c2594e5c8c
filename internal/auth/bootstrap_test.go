package auth_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/auth"
)

func TestBootstrap(t *testing.T) {
	store := &keys{}
	path := filepath.Join(t.TempDir(), "key")
	created, err := auth.Bootstrap(t.Context(), store, path)
	if err != nil || !created {
		t.Fatal(created, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	secret, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := auth.New(store).Authenticate(t.Context(), strings.TrimSpace(string(secret)))
	if err != nil || p.Tenant != cove.DefaultTenant || !p.May(cove.ScopeAdmin) {
		t.Errorf("the key opens %+v, %v", p, err)
	}
	if created, err = auth.Bootstrap(t.Context(), store, path); created || err != nil || len(store.list) != 1 {
		t.Errorf("the second start: %t, %v, %d keys", created, err, len(store.list))
	}
	again := &keys{}
	if created, err = auth.Bootstrap(t.Context(), again, path); created || err != nil || len(again.list) != 1 {
		t.Errorf("a start with an empty store: %t, %v, %d keys", created, err, len(again.list))
	}
	if _, _, err := auth.New(again).Authenticate(t.Context(), strings.TrimSpace(string(secret))); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("the directory holds %v", left)
	}
}

func TestBootstrapRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secret := cove.NewSecret()
	linked := filepath.Join(dir, "link")
	if err := os.Symlink(write("target", secret, 0o600), linked); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"open to the group": write("group", secret, 0o640),
		"open to all":       write("world", secret, 0o604),
		"empty":             write("empty", "", 0o600),
		"short":             write("short", "cove_letmein", 0o600),
		"no prefix":         write("prefix", strings.Repeat("x", len(secret)), 0o600),
		"huge":              write("huge", strings.Repeat("x", 1<<20), 0o600),
		"a link":            linked,
		"a directory":       dir,
	} {
		store := &keys{}
		created, err := auth.Bootstrap(t.Context(), store, path)
		if created || !errors.Is(err, cove.Invalid) || len(store.list) > 0 || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %t %v, %d keys", name, created, err, len(store.list))
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error holds the secret", name)
		}
	}
}

func TestBootstrapWithoutADirectory(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "none", "key"), filepath.Join(file, "key")} {
		created, err := auth.Bootstrap(t.Context(), &keys{}, path)
		if created || !errors.Is(err, cove.Unavailable) {
			t.Errorf("%s: %t %v", path, created, err)
		}
	}
}

// TestBootstrapThatWasCut: a start that wrote the file and died is made good
// by the next one.
func TestBootstrapThatWasCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	broken := &keys{fail: cove.Errorf(cove.Unavailable, "the disk is gone")}
	if _, err := auth.Bootstrap(t.Context(), broken, path); !errors.Is(err, cove.Unavailable) {
		t.Errorf("%v", err)
	}
	store := &keys{}
	if created, err := auth.Bootstrap(t.Context(), store, path); created || err != nil || len(store.list) != 1 {
		t.Errorf("%t %v, %d keys", created, err, len(store.list))
	}
}
