package cove_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/provider/all"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// TestProvidersPage compares the table of docs/providers.md with the cases and
// providers that there are. What became of a case is not looked at: it is said by
// make matrix, where the engines are.
func TestProvidersPage(t *testing.T) {
	page := readFile(t, "docs/providers.md")
	var cases []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+/[a-z0-9_]+)` \\| ").FindAllStringSubmatch(page, -1) {
		cases = append(cases, m[1])
	}
	if diff := cmp.Diff(providertest.Cases(), cases); diff != "" {
		t.Errorf("the cases of the table; make matrix ARGS=-write makes it anew (-want +got):\n%s", diff)
	}
	_, table, _ := strings.Cut(page, "\n| case | ")
	head, _, _ := strings.Cut(table, "\n")
	columns := strings.Split(strings.Trim(head, " |"), " | ")
	for _, name := range all.Names() {
		if !slices.Contains(columns, name) {
			t.Errorf("the table has no column for %s", name)
		}
		if !strings.Contains(page, "\n| `"+name+"` | ") {
			t.Errorf("the ladder has no rung for %s", name)
		}
		if name != "fake" && !strings.Contains(page, "\n## "+name+"\n") {
			t.Errorf("nothing is said about how to get %s", name)
		}
	}
	if strings.Contains(page, "| FAIL |") {
		t.Error("the table shows a failure")
	}
}
