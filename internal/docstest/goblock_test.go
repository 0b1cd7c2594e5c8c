package docstest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/docstest"
)

// TestGo checks the Go in the documentation: what is shown is what is compiled
// and tested elsewhere.
func TestGo(t *testing.T) {
	named := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks, err := docstest.GoBlocks(string(text))
		if err != nil {
			t.Fatalf("%s: %v", page, err)
		}
		for _, b := range blocks {
			var source []byte
			if b.File != "" {
				named++
				if source, err = os.ReadFile(filepath.Join(root, filepath.FromSlash(b.File))); err != nil {
					t.Errorf("%s: line %d: %v", page, b.Line, err)
					continue
				}
			}
			if err := b.Check(string(source)); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if named == 0 {
		t.Error("no block was compared with a file")
	}
}

// pages are the files of the documentation.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{filepath.Join(root, "README.md")}
	for _, pattern := range []string{"docs/*.md", "skills/*/SKILL.md"} {
		some, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(some) == 0 {
			t.Fatalf("%s: no page: %v", pattern, err)
		}
		all = append(all, some...)
	}
	return all
}

func TestGoBlocks(t *testing.T) {
	page := strings.ReplaceAll(`
'''go a/b.go
x := 1
…
y := 2
'''
'''sh
true
'''
- in a list:
  '''go
  if x {
  }
  '''
`, "'", "`")
	got, err := docstest.GoBlocks(page)
	if err != nil {
		t.Fatal(err)
	}
	want := []docstest.GoBlock{{Line: 2, File: "a/b.go", Text: "x := 1\n…\ny := 2\n"}, {Line: 11, Text: "if x {\n}\n"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	if _, err := docstest.GoBlocks("```go\nx"); err == nil {
		t.Error("a block without an end was taken")
	}
}

func TestGoBlockCheck(t *testing.T) {
	const file = "package p\n\nfunc f() {\n\tx := 1\n\tg(x)\n\ty := 2\n}\n"
	for text, ok := range map[string]bool{
		"x := 1\ng(x)\n":      true,
		"x := 1\n…\ny := 2\n": true,
		"x := 1\ny := 2\n":    false,
		"x := 2\n":            false,
		"y := 2\n…\nx := 1\n": false,
	} {
		if err := (docstest.GoBlock{File: "f.go", Text: text}).Check(file); (err == nil) != ok {
			t.Errorf("%q in a file: %v", text, err)
		}
	}
	for text, ok := range map[string]bool{
		"x, err := f()\n": true, "func f() {}\n": true, file: true, "x :=\n": false, "see above\n": false,
	} {
		if err := (docstest.GoBlock{Text: text}).Check(""); (err == nil) != ok {
			t.Errorf("%q alone: %v", text, err)
		}
	}
}
