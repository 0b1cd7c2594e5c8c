package all_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/all"
)

func TestEveryProviderOpens(t *testing.T) {
	if diff := cmp.Diff([]string{"docker", "e2b", "fake", "gvisor", "local", "microsandbox"}, all.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	home := t.TempDir()
	providers := all.Providers(all.Config{Home: home})
	if entries, err := os.ReadDir(home); err != nil || len(entries) > 0 {
		t.Errorf("before anything is opened there is %v, %v", entries, err)
	}
	for _, name := range all.Names() {
		p, err := providers[name]()
		if err != nil {
			t.Fatal(err)
		}
		if p.Name() != name {
			t.Errorf("%s is called %s", name, p.Name())
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestHomeThatCannotBe(t *testing.T) {
	home := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(home, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// The others make their directory when they first need it.
	for _, name := range []string{"fake", "local"} {
		if p, err := all.Providers(all.Config{Home: home})[name](); cove.CodeOf(err) != cove.Unavailable || p != nil {
			t.Errorf("%s gives %v, %v", name, p, err)
		}
	}
}
