package policy_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/policy"
)

func TestArgv(t *testing.T) {
	p := agentBash(t)
	for _, c := range []struct {
		argv []string
		rule string
	}{
		{[]string{"ls", "-l", "*", "$(rm x)", "`rm`"}, ""},
		{[]string{"echo", "; rm x"}, ""},
		{[]string{"/usr/bin/jq", ".", "f"}, ""},
		{[]string{"find", ".", "-name", "*.txt", "-exec", "grep", "x", "{}", ";"}, ""},
		{[]string{"sed", "-n", "1,5p", "f"}, ""},
		{[]string{"sed", "-n", "-2p", "f"}, ""},
		{[]string{"awk", "{print $1}", "f"}, ""},
		{[]string{"sort", "-t", ",", "-k", "2", "--", "--compress-program=x"}, ""},
		{[]string{"python3", "script.py", "-c", "import os"}, ""},
		{[]string{"python3", "-c", "print(1)"}, ""},
		{[]string{"rm", "x"}, policy.RuleDenied},
		{[]string{"/bin/rm", "x"}, policy.RuleDenied},
		{[]string{"./ls"}, policy.RulePath},
		{[]string{"ls -l"}, policy.RuleUnlisted},
		{[]string{""}, policy.RuleUnlisted},
		{[]string{"cd", "/"}, policy.RuleUnlisted}, // a builtin is no program
		{[]string{"eval", "rm"}, policy.RuleUnlisted},
		{[]string{"$x"}, policy.RuleUnlisted},
		{[]string{"bash", "-c", "ls"}, policy.RuleUnlisted},
		{[]string{"find", ".", "-exec", "rm", "{}", "+"}, policy.RuleDenied},
		{[]string{"ls", strings.Repeat("a", 70000)}, policy.RuleSize},
	} {
		e, err := p.Explain("", cove.ExecRequest{Argv: c.argv})
		if err != nil {
			t.Fatal(err)
		}
		d := e.Decision
		switch {
		case c.rule == "" && d.Effect != cove.Allow:
			t.Errorf("%q: %+v", c.argv, *d.Refusal)
		case c.rule != "" && (d.Effect != cove.Deny || d.Refusal.Rule != c.rule || d.Refusal.Line != 0):
			t.Errorf("%q: %+v, want %s", c.argv, d, c.rule)
		}
	}
}

// quoteWord writes text so that a shell reads it back, in one of several ways.
func quoteWord(t *rapid.T, text string) string {
	single := "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	var double, escaped strings.Builder
	for _, r := range text {
		if strings.ContainsRune("\"\\$`", r) {
			double.WriteByte('\\')
		}
		double.WriteRune(r)
		if r != '\n' {
			escaped.WriteByte('\\')
		}
		escaped.WriteRune(r)
	}
	forms := []string{single, `"` + double.String() + `"`}
	if text != "" && !strings.Contains(text, "\n") {
		forms = append(forms, escaped.String())
	}
	return rapid.SampledFrom(forms).Draw(t, "form")
}

// anyText draws arguments that are made of what shells care about.
func anyText() *rapid.Generator[string] {
	parts := []string{
		"a", "rm", " ", "'", `"`, `\`, "$", "(", ")", "`", ";", "|", "&", "<", ">", "\n", "{", "}", "*", "?", "[", "]", "~",
		"#", "=", "-", "--", "$(rm)", "${x}", "é", "{}", "-exec", "1e rm", "system(", "!",
	}
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 6).Draw(t, "parts"), "")
	})
}

// TestQuotingChangesNothing: however the arguments of a command are quoted, a
// line of it is judged like its argv.
func TestQuotingChangesNothing(t *testing.T) {
	p := agentBash(t)
	programs := append(policy.AgentBash().Allow, "rm", "curl", "node", "/bin/ls", "./ls")
	rapid.Check(t, func(rt *rapid.T) {
		argv := append([]string{rapid.SampledFrom(programs).Draw(rt, "program")}, rapid.SliceOfN(anyText(), 0, 4).Draw(rt, "arguments")...)
		words := make([]string, len(argv))
		for i, a := range argv {
			words[i] = quoteWord(rt, a)
		}
		line := strings.Join(words, " ")
		asArgv, err := p.Explain("", cove.ExecRequest{Argv: argv})
		if err != nil {
			rt.Fatal(err)
		}
		asLine, err := p.Explain("", cove.ExecRequest{Line: line})
		if err != nil {
			rt.Fatal(err)
		}
		if asArgv.Decision.Effect != asLine.Decision.Effect {
			rt.Fatalf("argv %q: %+v\nline %s: %+v", argv, asArgv.Decision.Refusal, line, asLine.Decision.Refusal)
		}
		if r, s := asArgv.Decision.Refusal, asLine.Decision.Refusal; r != nil && r.Rule != s.Rule {
			rt.Fatalf("argv %q: %s\nline %s: %s", argv, r.Rule, line, s.Rule)
		}
		if len(asLine.Programs) > 0 && asLine.Programs[0].Name != asArgv.Programs[0].Name {
			rt.Fatalf("argv %q found %v, line %s found %v", argv, asArgv.Programs, line, asLine.Programs)
		}
	})
}
