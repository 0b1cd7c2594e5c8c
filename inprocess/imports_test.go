package inprocess_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/inprocess"
)

// TestImports: on sandboxes of this machine, with the interpreter that is there.
// Whatever code did before in a session, what looks at the next is out of its reach.
func TestImports(t *testing.T) {
	needLocal(t)
	cfg := inprocess.Config{Home: filepath.Join(t.TempDir(), "home"), Provider: "local", Settings: settings()}
	cfg.Settings["SANDBOX_BLOCK_DANGEROUS_IMPORTS"] = "true"
	p := open(t, cfg)
	s, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	spoil := `
import os, sys
for name in ("ast", "json", "os", "resource", "signal", "sitecustomize", "usercustomize"):
    open("/workspace/" + name + ".py", "w").write("raise SystemExit(0)")
os.environ["PYTHONPATH"] = "/workspace"
print(sys.version_info[:2])`
	for _, c := range []struct {
		name    string
		req     cove.CodeRequest
		outcome cove.Outcome
		error   string
	}{
		{"what a trusted caller spoils", cove.CodeRequest{Code: spoil, Trusted: true}, cove.Exited, ""},
		{"a dangerous import", cove.CodeRequest{Code: "x = 1\nimport os"}, cove.Blocked, ""},
		{"a request that would rather not", cove.CodeRequest{Code: "import os", Imports: cove.ImportsOff}, cove.Blocked, ""},
		{"a hidden one", cove.CodeRequest{Code: "exec('__imp' + 'ort__(\"os\")')"}, cove.Blocked, ""},
		{"too deep", cove.CodeRequest{Code: "f" + strings.Repeat("()", 100_000)}, cove.Blocked, ""},
		{"too large", cove.CodeRequest{Code: strings.Repeat("x = 1\n", 2<<20)}, cove.Blocked, ""},
		{"a mistake", cove.CodeRequest{Code: "x = = 1"}, cove.Exited, "SyntaxError"},
		{"an innocent", cove.CodeRequest{Code: "import math\nprint(math.sqrt(49))"}, cove.Exited, ""},
	} {
		c.req.Language = "python"
		res, err := p.Contexts(s.ID).Run(t.Context(), c.req)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		name := ""
		if res.Error != nil {
			name = res.Error.Name
		}
		if res.Outcome != c.outcome || name != c.error || res.Security == nil || res.Security.Bypassed != c.req.Trusted {
			t.Errorf("%s: %s %s, %+v, %+v", c.name, res.Outcome, name, res.Refusal, res.Security)
		}
	}
	for _, id := range []cove.ID{s.ID, ""} {
		got, err := p.Contexts(id).Analyze(t.Context(), cove.AnalyzeRequest{Language: "python", Code: "from os import path"})
		if err != nil || got.Decision.Effect != cove.Deny || len(got.Security.Blocked) != 1 || got.Provider != "local" {
			t.Errorf("session %q: %+v, %v", id, got, err)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
