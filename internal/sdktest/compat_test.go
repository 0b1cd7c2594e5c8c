package sdktest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/sdktest"
)

// all returns a column in which every case ended as it should.
func all() sdktest.Column {
	c := sdktest.Column{Title: "npm 1", Lines: map[string]sdktest.Line{}}
	for _, s := range sdktest.Sections {
		for _, r := range s.Rows {
			l := sdktest.Line{Case: r.Case, Status: sdktest.Pass}
			if r.No != "" {
				l.Status = sdktest.Unsupported
			}
			c.Lines[r.Case] = l
		}
	}
	return c
}

func TestProblems(t *testing.T) {
	if got := all().Problems(); len(got) > 0 {
		t.Errorf("a good column has problems: %q", got)
	}
	for name, tt := range map[string]struct {
		line sdktest.Line
		want []string
	}{
		"failed":       {sdktest.Line{Case: "run", Status: sdktest.Fail, Why: "it broke"}, []string{"run: it broke"}},
		"refused":      {sdktest.Line{Case: "run", Status: sdktest.Unsupported, Why: "never"}, []string{"run: is refused, and the rows do not say why: never"}},
		"unknown word": {sdktest.Line{Case: "run", Status: "odd", Why: "x"}, []string{"run: x"}},
		"no row":       {sdktest.Line{Case: "dance", Status: sdktest.Pass}, []string{"dance: has no row"}},
		"absent":       {sdktest.Line{Case: "run", Status: sdktest.Absent}, nil},
		"skipped":      {sdktest.Line{Case: "run", Status: sdktest.Skip}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := all()
			c.Lines[tt.line.Case] = tt.line
			if diff := cmp.Diff(tt.want, c.Problems()); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
	c := all()
	delete(c.Lines, "run")
	if want, got := []string{"run: did not run"}, c.Problems(); !slices.Equal(got, want) {
		t.Errorf("problems %q, want %q", got, want)
	}
}

func TestTable(t *testing.T) {
	whole, other := all(), all()
	other.Title = "npm 2"
	other.Lines["run"] = sdktest.Line{Case: "run", Status: sdktest.Absent}
	want := sdktest.Table([]sdktest.Column{whole, other})
	for _, line := range []string{
		"## Commands and terminals\n\n|  | npm 1 | npm 2 |\n|---|---|---|\n| run a command, with its output as it comes | yes | – |\n",
		"| a command as `root` | no | no |\n",
		"\n## Why not\n\n",
		"- a command as `root`: A sandbox has one user, who is not root.\n",
	} {
		if !strings.Contains(want, line) {
			t.Errorf("the table lacks %q:\n%s", line, want)
		}
	}

	// A machine that cannot run a column, or a case, takes them from the page.
	part := all()
	part.Lines["run"] = sdktest.Line{Case: "run", Status: sdktest.Skip}
	got := sdktest.Table([]sdktest.Column{part, {Title: "npm 2"}})
	if got == want {
		t.Error("what did not run is in the table")
	}
	if diff := cmp.Diff(want, sdktest.Fill(got, want)); diff != "" {
		t.Errorf("filled (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got, sdktest.Fill(got, strings.ReplaceAll(want, "npm 2", "npm 3"))); diff != "" {
		t.Errorf("filled from a page about another version (-want +got):\n%s", diff)
	}
	failed := all()
	failed.Lines["list"] = sdktest.Line{Case: "list", Status: sdktest.Absent}
	if sdktest.Fill(sdktest.Table([]sdktest.Column{failed, other}), want) == want {
		t.Error("what is different is taken from the page")
	}
}
