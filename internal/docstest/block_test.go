package docstest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/docstest"
)

func TestBlocks(t *testing.T) {
	page := strings.ReplaceAll(`# A page
'''sh
echo one
'''

'''output
one
'''
Text.
'''sh skip=it starts a server
cove serve
'''
'''text
not run
'''
- in a list:
  '''sh
  cat <<x
    kept
  x
  '''
''''sh
echo "'''"
''''
'''python
not run
'''
'''python needs=sdks
print("two")
'''
'''output
two
'''
'''js needs=sdks
console.log('three')
'''
`, "'", "`")
	page = strings.ReplaceAll(page, "`three`", "'three'")
	got, err := docstest.Blocks(page)
	if err != nil {
		t.Fatal(err)
	}
	want := []docstest.Block{
		{Line: 2, Script: "echo one\n", Output: "one\n", Checks: true},
		{Line: 10, Script: "cove serve\n", Skip: "it starts a server"},
		{Line: 17, Script: "cat <<x\n  kept\nx\n"},
		{Line: 22, Script: "echo \"```\"\n"},
		{Line: 28, Needs: "sdks", Script: "python3 - <<'END-OF-BLOCK'\nprint(\"two\")\nEND-OF-BLOCK\n", Output: "two\n", Checks: true},
		{Line: 34, Needs: "sdks", Script: "node --input-type=module - <<'END-OF-BLOCK'\nconsole.log('three')\nEND-OF-BLOCK\n"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
}

func TestBlocksThatWouldBeMisread(t *testing.T) {
	for name, tt := range map[string]struct{ page, want string }{
		"open":            {"'''sh\necho\n", "never closed"},
		"no script":       {"'''output\nx\n'''\n", "follows no sh block"},
		"text between":    {"'''sh\nx\n'''\nand\n'''output\nx\n'''\n", "follows no sh block"},
		"skip for no one": {"'''sh skip=\nx\n'''\n", "skip=<reason>"},
		"misspelled":      {"'''sh skipped\nx\n'''\n", "skip=<reason>"},
		"needs nothing":   {"'''sh needs=\nx\n'''\n", "needs=<engine>"},
		"other language":  {"'''js run\nx\n'''\n", "needs=<engine>"},
		"other word":      {"'''bash\nx\n'''\n", "write sh"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := docstest.Blocks(strings.ReplaceAll(tt.page, "'", "`"))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestMatch(t *testing.T) {
	for name, tt := range map[string]struct {
		want, got string
		ok        bool
	}{
		"same":                   {"a\nb\n", "a\nb\n", true},
		"no newline at the end":  {"a", "a\n", true},
		"white space":            {"a   b\n", "a b  \n", true},
		"other":                  {"a\n", "b\n", false},
		"more":                   {"a\n", "a\nb\n", false},
		"less":                   {"a\nb\n", "a\n", false},
		"any text":               {"id … made in … ms\n", "id 01k made in 5 ms\n", true},
		"any text, other end":    {"id … ms\n", "id 01k s\n", false},
		"any lines":              {"a\n…\nz\n", "a\nb\nc\nz\n", true},
		"no line":                {"a\n…\nz\n", "a\nz\n", true},
		"any lines at the end":   {"a\n…\n", "a\nb\n", true},
		"the last of many":       {"…\nz\n", "z\na\nz\n", true},
		"empty wants empty":      {"", "x\n", false},
		"everything":             {"…\n", "x\ny\n", true},
		"two wild cards, no fit": {"…a…b\n", "xbxa\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := docstest.Match(tt.want, tt.got); got != tt.ok {
				t.Errorf("Match(%q, %q) = %v", tt.want, tt.got, got)
			}
		})
	}
}
