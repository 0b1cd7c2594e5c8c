package main

import (
	"os"
	"strings"
	"testing"
)

const minMutations = 12

// TestMutationsApply changes the text of each file, and looks for the test that must
// notice it. make mutate runs the tests.
func TestMutationsApply(t *testing.T) {
	t.Chdir("../..")
	page, err := os.ReadFile("docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(mutations) < minMutations {
		t.Errorf("there are %d mutations, want at least %d", len(mutations), minMutations)
	}
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			text, err := m.apply()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(text, m.new) || m.old == m.new {
				t.Error("it changes nothing")
			}
			if row := m.row(); !strings.Contains(string(page), row) {
				t.Errorf("docs/testing.md has no row\n%s", row)
			}
		})
	}
}

// row is the row of a mutation in docs/testing.md.
func (m mutation) row() string {
	return "| " + m.name + " | `" + m.file + "` | `" + strings.TrimPrefix(m.pkg, "./") + " " + m.test + "` |\n"
}

func TestPattern(t *testing.T) {
	if got := pattern("TestX/a b/c"); got != "^TestX$/^a b$/^c$" {
		t.Error(got)
	}
}

func TestRunRefuses(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), "no mutation has this name", &out); err == nil || !strings.Contains(err.Error(), "0 mutations were caught") {
		t.Errorf("%v, %s", err, &out)
	}
}
