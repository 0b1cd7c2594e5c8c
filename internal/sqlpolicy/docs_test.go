package sqlpolicy_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/sqlpolicy"
)

var example = regexp.MustCompile("(?s)```sql\n(.*?)\n```\n\n```json\n(.*?)\n```")

// TestDocs keeps the page true: its examples, its list and its rules.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	examples := example.FindAllStringSubmatch(page, -1)
	if len(examples) < 4 {
		t.Errorf("found %d examples", len(examples))
	}
	for _, m := range examples {
		var want cove.Refusal
		if err := json.Unmarshal([]byte(m[2]), &want); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
		v, _ := judge(t, m[1], shop, grants["narrow"])
		if diff := cmp.Diff(&want, v.Refusal); diff != "" {
			t.Errorf("%s: %s", m[1], diff)
		}
	}
	for _, rule := range []string{
		sqlpolicy.RuleOneStatement, sqlpolicy.RuleSelectOnly, sqlpolicy.RuleText, sqlpolicy.RuleSize, sqlpolicy.RuleNode, sqlpolicy.RuleFunction,
		sqlpolicy.RuleTableFunction, sqlpolicy.RuleTable, sqlpolicy.RuleColumn, sqlpolicy.RuleCatalog, sqlpolicy.RuleParameter,
	} {
		if !strings.Contains(page, "`"+rule+"`") {
			t.Errorf("the page does not tell of the rule %q", rule)
		}
	}
	_, rest, _ := strings.Cut(page, "| functions in `FROM` | ")
	line, _, _ := strings.Cut(rest, " |\n")
	for name := range strings.FieldsSeq(line) {
		sql := "SELECT * FROM " + strings.Trim(name, "`") + "(1, 2)"
		if v, _ := judge(t, sql, shop, grants["all"]); v.Refusal != nil {
			t.Errorf("the page lists %s: %s", name, say(v))
		}
	}
}
