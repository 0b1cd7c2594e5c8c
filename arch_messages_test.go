package cove_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	verb    = regexp.MustCompile(`%[-+# 0-9.]*[a-z]`)
	message = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
)

// TestMessages demands that each message that docs/troubleshooting.md and
// docs/providers.md explain is one that the program can say.
func TestMessages(t *testing.T) {
	text, err := os.ReadFile("docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, providers, _ := strings.Cut(readFile(t, "docs/providers.md"), "\n## Troubleshooting")
	providers, _, _ = strings.Cut(providers, "\n## ")
	found := message.FindAllStringSubmatch(string(text)+providers, -1)
	if len(found) < 30 {
		t.Errorf("only %d messages", len(found))
	}
	said := texts(t)
	seen := map[string]bool{}
	for _, m := range found {
		if seen[m[1]] {
			t.Errorf("%q stands there twice", m[1])
		}
		seen[m[1]] = true
		if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, m[1]) }) {
			t.Errorf("nothing in the source says %q", m[1])
		}
	}
}

// texts returns all texts in the source, with … for what is put into them.
func texts(t *testing.T) []string {
	t.Helper()
	var all []string
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", ".cache", "bin", "testdata"}, d.Name()):
			return fs.SkipDir
		case path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					all = append(all, verb.ReplaceAllString(text, "…"))
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
