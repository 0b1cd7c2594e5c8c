package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
)

func TestCodeIsKept(t *testing.T) {
	for word, want := range map[string]int{"": 1, "always": 2, "on_error": 1, "never": 0} {
		cfg := settings(t, "SANDBOX_STORE_CODE", word, "COVE_API_KEY", "topsecretkey")
		p, err := daemon.OneShot(t.Context(), cfg, cove.Spec{}, false)
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range []string{"x = 42", "raise E topsecretkey"} {
			if _, err := p.Contexts(s.ID).Run(t.Context(), cove.CodeRequest{Language: "calc", Code: code}); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		names, err := filepath.Glob(filepath.Join(cfg.Home, "artifacts", "executions", "*.json"))
		if err != nil || len(names) != want {
			t.Errorf("SANDBOX_STORE_CODE=%s keeps %v, %v", word, names, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil || strings.Contains(string(text), "topsecretkey") || !strings.Contains(string(text), `"language": "calc"`) {
				t.Errorf("%s, %v", text, err)
			}
		}
	}
}
