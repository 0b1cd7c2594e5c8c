package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/policy"
)

func TestExplain(t *testing.T) {
	p := agentBash(t)
	line := "f() { jq . a; }\nls | grep x\n\tfor i in $(cat l); do rm \"$i\"; done; cd /; f; find . -exec head {} \\;\nnode; /usr/bin/wc; ./x"
	e := explainLine(t, p, line)
	want := policy.Explanation{
		Profile: "agent-bash",
		Decision: cove.Decision{Effect: cove.Deny, Layer: cove.Content, Refusal: &cove.Refusal{
			Rule: policy.RuleDenied, Reason: "rm is denied by the command policy agent-bash", Word: "rm", Line: 3, Column: 24,
		}},
		Programs: []policy.Program{
			{Name: "jq", Kind: policy.KindProgram, Effect: cove.Allow, Line: 1, Column: 7},
			{Name: "ls", Kind: policy.KindProgram, Effect: cove.Allow, Line: 2, Column: 1},
			{Name: "grep", Kind: policy.KindProgram, Effect: cove.Allow, Line: 2, Column: 6},
			{Name: "cat", Kind: policy.KindProgram, Effect: cove.Allow, Line: 3, Column: 13},
			{Name: "rm", Kind: policy.KindProgram, Effect: cove.Deny, Line: 3, Column: 24},
			{Name: "cd", Kind: policy.KindBuiltin, Effect: cove.Allow, Line: 3, Column: 39},
			{Name: "f", Kind: policy.KindFunction, Effect: cove.Allow, Line: 3, Column: 45},
			{Name: "find", Kind: policy.KindProgram, Effect: cove.Allow, Line: 3, Column: 48},
			{Name: "head", Kind: policy.KindProgram, Effect: cove.Allow, Line: 3, Column: 61},
			{Name: "node", Kind: policy.KindProgram, Effect: cove.Deny, Line: 4, Column: 1},
			{Name: "wc", Kind: policy.KindProgram, Effect: cove.Allow, Line: 4, Column: 7},
			{Name: "./x", Kind: policy.KindProgram, Effect: cove.Deny, Line: 4, Column: 20},
		},
	}
	if diff := cmp.Diff(want, e, cmpopts.IgnoreFields(cove.Decision{}, "Programs")); diff != "" {
		t.Error(diff)
	}
}

func TestExplainAsJSON(t *testing.T) {
	p := agentBash(t)
	text, err := json.Marshal(explainLine(t, p, "ls; curl x"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"profile":"agent-bash","decision":{"effect":"deny","layer":"content","refusal":{"rule":"denied program","reason":"curl is denied by the command policy agent-bash","word":"curl","line":1,"column":5}},` +
		`"programs":[{"name":"ls","kind":"program","effect":"allow","line":1,"column":1},{"name":"curl","kind":"program","effect":"deny","line":1,"column":5}]}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if text, err = json.Marshal(explainLine(t, p, "# nothing")); err != nil || !strings.Contains(string(text), `"programs":[]`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestExplainRefuses(t *testing.T) {
	p, err := policy.New(policy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "nope"} {
		if _, err := p.Explain(name, cove.ExecRequest{Line: "ls"}); cove.CodeOf(err) != cove.Invalid || !strings.Contains(cove.MessageOf(err), "agent-bash") {
			t.Errorf("profile %q: %v", name, err)
		}
	}
	if _, err := policy.Explain(policy.Profile{}, cove.ExecRequest{Line: "ls"}); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("an empty profile: %v", err)
	}
}

// TestRefusalsAreBounded: what a line holds comes back cut, and what it starts
// is counted up to a bound.
func TestRefusalsAreBounded(t *testing.T) {
	p := agentBash(t)
	e := explainLine(t, p, strings.Repeat("é", 500)+" x")
	if w := e.Decision.Refusal.Word; len(w) > 90 || !strings.HasSuffix(w, "…") {
		t.Errorf("the word is %d bytes long: %s", len(w), w)
	}
	if len(e.Decision.Refusal.Reason) > 700 {
		t.Errorf("the reason is %d bytes long", len(e.Decision.Refusal.Reason))
	}
	e = explainLine(t, p, strings.Repeat("ls\n", 5000))
	if e.Decision.Effect != cove.Allow || len(e.Programs) != 1000 {
		t.Errorf("%s with %d programs", e.Decision.Effect, len(e.Programs))
	}
	e = explainLine(t, p, strings.Repeat("ls\n", 5000)+"rm x")
	if r := e.Decision.Refusal; r == nil || r.Line != 5001 || r.Column != 1 {
		t.Errorf("%+v", r)
	}
	e = explainLine(t, p, "echo "+strings.Repeat("a", 40000)+"; rm x")
	if r := e.Decision.Refusal; r == nil || r.Line != 1 || r.Column != 40008 {
		t.Errorf("%+v", r)
	}
}

// TestHeavyLines: lines that are made to be slow to judge are judged.
func TestHeavyLines(t *testing.T) {
	p := agentBash(t)
	for name, line := range map[string]string{
		"a long chain of variables": func() string {
			var b strings.Builder
			for i := range 2000 {
				b.WriteString("v" + strings.Repeat("a", i%20) + "=$w" + strings.Repeat("b", i%17) + "\n")
			}
			return b.String()
		}(),
		"brackets that quotes hide": strings.Repeat("( ')' ", 9000),
		"open quotes":               strings.Repeat(`"$(`, 20000),
		"here-documents":            strings.Repeat("cat <<a\n", 8000),
		"functions":                 strings.Repeat("f()", 20000),
		"comments":                  strings.Repeat("# x\n", 16000),
		"backquotes":                strings.Repeat("` ", 30000),
		"commands":                  strings.Repeat("a\n", 30000),
		"quotes and line ends":      "ls " + strings.Repeat("'' \\\n", 12000),
		"lines in lines":            "bash -c '" + strings.Repeat(`bash -c "`, 7000),
		"launchers of launchers":    strings.Repeat("find . -exec ", 4900),
		"find actions":              "find . " + strings.Repeat("-exec ls ", 7000),
	} {
		t.Run(name, func(t *testing.T) { explainLine(t, p, line) })
	}
}
