package daemon_test

import (
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
)

func TestSettingsAboutImports(t *testing.T) {
	for word, want := range map[string]cove.ImportMode{"true": cove.ImportsBlock, "warn": cove.ImportsWarn, "false": cove.ImportsOff} {
		l, err := daemon.OneShot(t.Context(), settings(t, "SANDBOX_BLOCK_DANGEROUS_IMPORTS", word), cove.Spec{}, false)
		if err != nil {
			t.Fatal(err)
		}
		got, err := l.Contexts("").Analyze(t.Context(), cove.AnalyzeRequest{Language: "python", Code: "import os"})
		if err != nil || got.Security.Mode != want || len(got.Security.Blocked) != 1 || (got.Decision.Effect == cove.Deny) != (word == "true") {
			t.Errorf("%s: %+v, %v", word, got, err)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	cfg := settings(t)
	cfg.Imports = config.Imports{"allow": {"no module"}}
	if _, err := daemon.Policy(cfg); cove.CodeOf(err) != cove.Invalid || !strings.Contains(err.Error(), "imports.allow: ") {
		t.Errorf("a list that cannot be: %v", err)
	}
}
