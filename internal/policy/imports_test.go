package policy_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/policy"
)

func importing(t *testing.T, rules policy.Imports) *policy.Policy {
	t.Helper()
	p, err := policy.New(policy.Config{Imports: rules})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDangerousImports(t *testing.T) {
	for _, c := range []struct {
		rules     policy.Imports
		found     cove.Import
		dangerous bool
	}{
		{policy.Imports{}, cove.Import{Module: "os", How: "import"}, true},
		{policy.Imports{}, cove.Import{Module: "os.path", How: "import"}, true},
		{policy.Imports{}, cove.Import{Module: "os", Name: "path", How: "from"}, true},
		{policy.Imports{}, cove.Import{Module: "osmnx", How: "import"}, false},
		{policy.Imports{}, cove.Import{Module: "math", How: "import"}, false},
		{policy.Imports{}, cove.Import{Module: "mine.os", How: "import"}, false},
		{policy.Imports{}, cove.Import{Module: "urllib", Name: "request", How: "from"}, true},
		{policy.Imports{}, cove.Import{Module: "urllib", Name: "parse", How: "from"}, false},
		{policy.Imports{}, cove.Import{Module: "urllib.request", Name: "urlopen", How: "from"}, true},
		{policy.Imports{}, cove.Import{Module: "urllib", How: "import"}, false},
		{policy.Imports{}, cove.Import{Module: cove.AnyModule, How: "__import__"}, true},
		{policy.Imports{}, cove.Import{Module: cove.AnyModule, How: "exec"}, true},
		{policy.Imports{Allow: []string{"importlib"}}, cove.Import{Module: cove.AnyModule, How: "import_module"}, false},
		{policy.Imports{Allow: []string{"importlib"}}, cove.Import{Module: cove.AnyModule, How: "eval"}, true},
		{policy.Imports{Allow: []string{"builtins"}}, cove.Import{Module: cove.AnyModule, How: "eval"}, false},
		{policy.Imports{Allow: []string{"pathlib"}}, cove.Import{Module: "pathlib", Name: "Path", How: "from"}, false},
		{policy.Imports{Allow: []string{"os.path"}}, cove.Import{Module: "os", Name: "path", How: "from"}, false},
		{policy.Imports{Allow: []string{"os.path"}}, cove.Import{Module: "os", Name: "system", How: "from"}, true},
		{policy.Imports{Block: []string{"pickle"}}, cove.Import{Module: "pickle", How: "import"}, true},
		{policy.Imports{Block: []string{"a.b"}, Allow: []string{"a"}}, cove.Import{Module: "a.b.c", How: "import"}, true},
		{policy.Imports{Block: []string{"a.b"}, Allow: []string{"a"}}, cove.Import{Module: "a.c", How: "import"}, false},
	} {
		if got := len(importing(t, c.rules).Dangerous([]cove.Import{c.found})) == 1; got != c.dangerous {
			t.Errorf("%+v under %+v: %v", c.found, c.rules, got)
		}
	}
}

func TestImportModeOfAnAction(t *testing.T) {
	trusted := cove.Principal{Scopes: []cove.Scope{cove.ScopeExec, cove.ScopeTrusted}}
	for _, c := range []struct {
		setting cove.ImportMode
		who     cove.Principal
		code    *cove.CodeRequest
		want    cove.ImportMode
	}{
		{"", trusted, nil, cove.ImportsOff},
		{"", trusted, &cove.CodeRequest{Language: "python"}, cove.ImportsOff},
		{cove.ImportsWarn, trusted, &cove.CodeRequest{Language: "py"}, cove.ImportsWarn},
		{cove.ImportsWarn, trusted, &cove.CodeRequest{Language: "python", Imports: cove.ImportsBlock}, cove.ImportsBlock},
		{cove.ImportsBlock, trusted, &cove.CodeRequest{Language: "python", Imports: cove.ImportsOff}, cove.ImportsBlock},
		{cove.ImportsBlock, trusted, &cove.CodeRequest{Language: "node"}, cove.ImportsOff},
		{cove.ImportsBlock, trusted, &cove.CodeRequest{Language: "python", Trusted: true}, cove.ImportsOff},
		{cove.ImportsBlock, cove.Principal{}, &cove.CodeRequest{Language: "python", Trusted: true}, cove.ImportsBlock},
	} {
		p := importing(t, policy.Imports{Mode: c.setting})
		if got := p.ImportMode(cove.Action{Verb: cove.ContextRun, Principal: c.who, Code: c.code}); got != c.want {
			t.Errorf("%q, %+v: %s, want %s", c.setting, c.code, got, c.want)
		}
	}
}

func TestImportDecisions(t *testing.T) {
	found := []cove.Import{{Module: "math", Line: 1}, {Module: "os", How: "import", Line: 2, Column: 8}}
	for _, c := range []struct {
		name   string
		mode   cove.ImportMode
		report *cove.SecurityReport
		reason string // "" means that it may run
	}{
		{"off", "", nil, ""},
		{"warn", cove.ImportsWarn, &cove.SecurityReport{Imports: found}, ""},
		{"nobody looked", cove.ImportsBlock, nil, "nobody looked"},
		{"not read", cove.ImportsBlock, &cove.SecurityReport{Unread: "it is too large"}, "it is too large"},
		{"innocent", cove.ImportsBlock, &cove.SecurityReport{Imports: found[:1]}, ""},
		{"a report that says that nothing is blocked", cove.ImportsBlock, &cove.SecurityReport{Imports: found, Blocked: nil}, "Security policy blocked import: os"},
		{"anything", cove.ImportsBlock, &cove.SecurityReport{Imports: []cove.Import{{Module: "?", How: "exec", Line: 1}}}, "only known when it runs"},
	} {
		p := importing(t, policy.Imports{Mode: c.mode})
		d := p.Decide(cove.Action{
			Verb: cove.ContextRun, Principal: cove.Principal{Scopes: []cove.Scope{cove.ScopeExec}},
			Code: &cove.CodeRequest{Language: "python"}, Report: c.report,
		})
		switch {
		case c.reason == "" && d.Effect != cove.Allow:
			t.Errorf("%s: %+v", c.name, d.Refusal)
		case c.reason != "" && (d.Effect != cove.Deny || d.Layer != cove.Content || d.Refusal.Rule != policy.RuleImport || !strings.Contains(d.Refusal.Reason, c.reason)):
			t.Errorf("%s: %+v, %+v", c.name, d, d.Refusal)
		case strings.HasSuffix(c.reason, ": os") && (d.Refusal.Line != 2 || d.Refusal.Column != 8 || d.Refusal.Word != "os"):
			t.Errorf("%s: %+v", c.name, d.Refusal)
		}
	}
}

// TestImportsUnderACommandPolicy: a list of programs without python3 says no
// before anybody speaks of imports.
func TestImportsUnderACommandPolicy(t *testing.T) {
	p, err := policy.New(policy.Config{
		Profiles: []policy.Profile{{Name: "readers", Allow: []string{"cat"}}}, Default: "readers",
		Imports: policy.Imports{Mode: cove.ImportsBlock},
	})
	if err != nil {
		t.Fatal(err)
	}
	d := p.Decide(cove.Action{Verb: cove.ContextRun, Principal: cove.Principal{Scopes: []cove.Scope{cove.ScopeExec}}, Code: &cove.CodeRequest{Language: "python"}})
	if d.Effect != cove.Deny || d.Refusal.Rule != policy.RuleLanguage {
		t.Errorf("got %+v", d.Refusal)
	}
}

func TestImportRulesThatCannotBe(t *testing.T) {
	for _, rules := range []policy.Imports{
		{Mode: "soft"},
		{Block: []string{"a b"}},
		{Block: []string{""}},
		{Allow: []string{"os."}},
		{Allow: []string{strings.Repeat("a", 200)}},
		{Block: []string{"a"}, Allow: []string{"a"}},
		{Block: make([]string, 1000)},
	} {
		if _, err := policy.New(policy.Config{Imports: rules}); cove.CodeOf(err) != cove.Invalid || !strings.Contains(err.Error(), "imports.") {
			t.Errorf("%.80v: %v", rules, err)
		}
	}
	if err := (policy.Imports{Block: policy.DangerousModules()}).Validate(); err != nil {
		t.Errorf("the built-in list: %v", err)
	}
}

// TestImportDocs keeps the list on the page true.
func TestImportDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "On the list, each with all that is in it:")
	section, _, _ = strings.Cut(section, "The settings file changes it.")
	var got []string
	for _, m := range ticked.FindAllStringSubmatch(section, -1) {
		got = append(got, m[1])
	}
	want := policy.DangerousModules()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the page lists %v, the policy %v", got, want)
	}
}
