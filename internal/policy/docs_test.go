package policy_test

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/policy"
)

var (
	example = regexp.MustCompile("(?s)```text\n(.*?)\n```\n\n```json\n(.*?)\n```")
	ticked  = regexp.MustCompile("`([^`]+)`")
)

// TestDocs keeps the page true: its examples, its list and its rules.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	p := agentBash(t)
	examples := example.FindAllStringSubmatch(page, -1)
	if len(examples) < 3 {
		t.Errorf("found %d examples", len(examples))
	}
	for _, m := range examples {
		var want policy.Explanation
		if err := json.Unmarshal([]byte(m[2]), &want); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
		if diff := cmp.Diff(want, explainLine(t, p, m[1]), cmpopts.IgnoreFields(cove.Decision{}, "Programs")); diff != "" {
			t.Errorf("%s: %s", m[1], diff)
		}
	}
	for row, names := range map[string][]string{"| allows |": policy.AgentBash().Allow, "| denies by name |": policy.AgentBash().Deny} {
		_, rest, _ := strings.Cut(page, row)
		line, _, _ := strings.Cut(rest, "\n")
		var got []string
		for _, m := range ticked.FindAllStringSubmatch(line, -1) {
			got = append(got, m[1])
		}
		if !reflect.DeepEqual(got, names) {
			t.Errorf("the page says %s %v, the profile %v", row, got, names)
		}
	}
	for _, e := range refused {
		if !strings.Contains(page, "`"+e.rule+"`") {
			t.Errorf("the page does not tell of the rule %q", e.rule)
		}
	}
}
