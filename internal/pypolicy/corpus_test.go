package pypolicy_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/pypolicy"
)

// lines are those of a file of code, one piece in each; \n stands for a new line.
func lines(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func code(line string) string { return strings.ReplaceAll(line, `\n`, "\n") }

// TestEvasion: every attempt is refused, by the rule and at the place that stand
// before it.
func TestEvasion(t *testing.T) {
	read := reader(t)
	all := lines(t, "evasion.txt")
	if len(all) < 80 {
		t.Errorf("there are %d attempts", len(all))
	}
	for _, line := range all {
		want, text, ok := strings.Cut(line, " | ")
		if !ok {
			t.Fatalf("no rule in %q", line)
		}
		report := read(code(text))
		got := "allowed"
		if report.Syntax != nil {
			got = "syntax"
		}
		d := pypolicy.Judge(report)
		if r := d.Refusal; r != nil {
			got = fmt.Sprintf("%s %s %d:%d", r.Rule, r.Word, r.Line, r.Column)
		}
		if got != want {
			t.Errorf("%s\n\tis  %s\n\twas to be %s", text, got, want)
		}
		if e := pypolicy.Problem(report, d); d.Refusal != nil && (e == nil || e.Type != "PYTHON_POLICY_VIOLATION" || e.Refusal != d.Refusal || !strings.Contains(e.Message, d.Refusal.Reason)) {
			t.Errorf("%s: %+v", text, e)
		}
	}
}

// TestHonest: code as analysts write it is allowed.
func TestHonest(t *testing.T) {
	read := reader(t)
	for _, line := range lines(t, "honest.txt") {
		report := read(code(line))
		if d := pypolicy.Judge(report); !d.Allowed || report.Syntax != nil || pypolicy.Problem(report, d) != nil {
			t.Errorf("%s\n\t%+v %+v", line, d.Refusal, report.Syntax)
		}
	}
}
