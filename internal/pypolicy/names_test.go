package pypolicy_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/pypolicy"
	"github.com/cove-sandbox/cove/internal/pypolicy/fact"
)

// TestNothingOnTheListIsAModule: what may be taken from a module is none itself,
// unless it has a list, in the Python and the pandas of this host.
func TestNothingOnTheListIsAModule(t *testing.T) {
	reader(t)
	list, err := json.Marshal(pypolicy.Taken())
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, "-I", "-W", "ignore", "-c", `
import functools, importlib, json, sys, types
lists, found, missing = json.loads(sys.argv[1]), [], []
import numpy, pandas
for path, names in lists.items():
    top, *rest = path.split(".")
    module = functools.reduce(getattr, rest, importlib.import_module(top))
    if not isinstance(module, types.ModuleType):
        missing.append(path)
    for name in names:
        if isinstance(getattr(module, name, None), types.ModuleType) and path + "." + name not in lists:
            found.append(path + "." + name)
print(json.dumps([found, missing]))`, string(list)).Output()
	if err != nil {
		t.Skipf("the host's Python has no pandas: %v", err)
	}
	if diff := cmp.Diff("[[], []]\n", string(out)); diff != "" {
		t.Error(diff)
	}
}

func TestUnread(t *testing.T) {
	for name, c := range map[string]struct {
		report fact.Report
		rule   string
		kind   string
		want   string
	}{
		"nobody could look": {
			fact.Report{Unread: "it took too long"},
			pypolicy.RuleUnread, cove.RunPythonPolicy,
			"the code cannot be looked into: it took too long; ask in smaller pieces (py.unread)",
		},
		"a kind of the future": {
			fact.Report{Facts: []fact.Fact{{Kind: "new", Line: 2, Column: 3}}},
			pypolicy.RuleUnread, cove.RunPythonPolicy,
			`line 2, column 3: something stands there that no rule is about ("new") (py.unread)`,
		},
		"a mistake":                 {fact.Report{Syntax: &cove.CodeError{Value: "invalid syntax", Line: 2}}, "", cove.RunPythonFailed, "Python syntax error: invalid syntax (line 2)"},
		"a mistake without a place": {fact.Report{Syntax: &cove.CodeError{Value: "it has null bytes"}}, "", cove.RunPythonFailed, "Python syntax error: it has null bytes"},
	} {
		d := pypolicy.Judge(&c.report)
		e := pypolicy.Problem(&c.report, d)
		if e == nil || e.Type != c.kind || e.Message != c.want {
			t.Errorf("%s: %+v", name, e)
		}
		if c.rule == "" != d.Allowed || d.Refusal != nil && d.Refusal.Rule != c.rule {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestImports(t *testing.T) {
	read := reader(t)
	d := pypolicy.Judge(read("import pandas as pd, math\nimport pandas\nfrom pandas.api.types import is_list_like"))
	if diff := cmp.Diff(&cove.RunDecision{Allowed: true, Imports: []string{"pandas", "math", "pandas.api.types"}}, d); diff != "" {
		t.Error(diff)
	}
	for _, m := range pypolicy.Modules() {
		if d := pypolicy.Judge(read("import " + m)); !d.Allowed {
			t.Errorf("%s: %+v", m, d.Refusal)
		}
	}
}

func TestNothingForATerminal(t *testing.T) {
	read := reader(t)
	for _, code := range []string{"getattr(x, '_\\x1b[2J\\n')", "pd.set_option('\\x1b[2J', 1)"} {
		d := pypolicy.Judge(read(code))
		if d.Allowed || strings.ContainsAny(d.Refusal.Reason+d.Refusal.Word, "\x1b\n") || !strings.Contains(d.Refusal.Word, "[2J") {
			t.Errorf("%s: %+v", code, d.Refusal)
		}
	}
}

// FuzzJudge: whatever is told, there is a decision, a refusal has a rule and a reason,
// and what no rule is about is refused.
func FuzzJudge(f *testing.F) {
	f.Add([]byte(`[{"kind":"attribute","name":"to_csv","of":"pandas","called":true,"args":1}]`))
	f.Add([]byte(`[{"kind":"name","name":"open","builtin":true},{"kind":"other"}]`))
	f.Add([]byte(`[{"kind":"from","of":"numpy","name":"*"},{"kind":"option"},{"kind":"query"},{"kind":"define","name":"____"}]`))
	known := []fact.Kind{
		fact.Import, fact.From, fact.Name, fact.Special, fact.Define, fact.Attribute, fact.Text, fact.Word, fact.Method, fact.Option, fact.Query,
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r fact.Report
		if json.Unmarshal(data, &r.Facts) != nil {
			t.Skip()
		}
		d := pypolicy.Judge(&r)
		if d.Allowed != (d.Refusal == nil) || d.Allowed != (pypolicy.Problem(&r, d) == nil) {
			t.Fatalf("%+v", d)
		}
		if d.Refusal != nil && (d.Refusal.Rule == "" || d.Refusal.Reason == "") {
			t.Errorf("%+v", d.Refusal)
		}
		for _, one := range r.Facts {
			if !slices.Contains(known, one.Kind) && d.Allowed {
				t.Errorf("%+v is allowed", one)
			}
		}
	})
}
