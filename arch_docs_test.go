package cove_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	link    = regexp.MustCompile(`\]\(<?([^)>\s]+)>?\)|(?:src|srcset|href)="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
	notSlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestScopesAreTold looks for every scope where keys are explained.
func TestScopesAreTold(t *testing.T) {
	for _, file := range []string{"docs/tenants.md", "internal/cli/testdata/help/cove_key_create.txt"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, scope := range cove.Scopes() {
			if !strings.Contains(string(text), string(scope)) {
				t.Errorf("%s does not tell of the scope %s", file, scope)
			}
		}
	}
}

// TestLinks follows every link of the documentation that stays in the
// repository, to the file and to the heading.
func TestLinks(t *testing.T) {
	tree := os.DirFS(".")
	pages := 0
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", ".cache", "bin", "testdata", "node_modules"}, d.Name()) {
			return fs.SkipDir
		}
		if path.Ext(name) != ".md" && name != "llms.txt" {
			return nil
		}
		pages++
		for _, target := range linksOf(t, tree, name) {
			if problem := follow(t, tree, name, target); problem != "" {
				t.Errorf("%s: the link %q %s", name, target, problem)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if pages == 0 {
		t.Error("no page of documentation was found")
	}
}

func page(t *testing.T, tree fs.FS, name string) string {
	t.Helper()
	text, err := fs.ReadFile(tree, name)
	if err != nil {
		t.Fatal(err)
	}
	return fence.ReplaceAllString(string(text), "")
}

func linksOf(t *testing.T, tree fs.FS, name string) []string {
	t.Helper()
	var targets []string
	for _, m := range link.FindAllStringSubmatch(page(t, tree, name), -1) {
		target := m[1] + m[2]
		if !strings.Contains(target, "://") && !strings.HasPrefix(target, "mailto:") {
			targets = append(targets, target)
		}
	}
	return targets
}

func follow(t *testing.T, tree fs.FS, from, target string) string {
	t.Helper()
	file, anchor, _ := strings.Cut(target, "#")
	name := from
	if file != "" {
		name = path.Join(path.Dir(from), file)
	}
	if !fs.ValidPath(name) {
		return "leaves the repository"
	}
	if _, err := fs.Stat(tree, name); err != nil {
		return "leads nowhere: " + err.Error()
	}
	if anchor == "" || path.Ext(name) != ".md" {
		return ""
	}
	for _, m := range heading.FindAllStringSubmatch(page(t, tree, name), -1) {
		if slug(m[1]) == anchor {
			return ""
		}
	}
	return "names a heading that " + name + " does not have"
}

// slug is the name that GitHub gives to a heading.
func slug(title string) string {
	return strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-")
}
