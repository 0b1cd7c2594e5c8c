package cove_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Bounds on the shape of the source.
const (
	maxFileLines = 500
	maxMainLines = 30
)

var (
	// A name says what is inside; these say that somebody did not know.
	bannedPackages = []string{
		"base", "common", "core", "helper", "helpers", "interfaces", "lib", "manager", "misc",
		"models", "pkg", "shared", "types", "util", "utils",
	}
	bannedFiles = []string{
		"common.go", "helper.go", "helpers.go", "interfaces.go", "misc.go", "types.go", "util.go", "utils.go",
	}

	sentence     = regexp.MustCompile(`[.!?:](\s|$)`)
	limits       = regexp.MustCompile(`(?i)\b(must not|never|not|only|nothing|no|none|cannot|without)\b`)
	majorVersion = regexp.MustCompile(`^v\d+$`)
	generated    = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
)

// parsed is one file of a package.
type parsed struct {
	name  string // within the module
	file  *ast.File
	fset  *token.FileSet
	lines int
	made  bool // by a generator
	test  bool
}

// parse returns the files of the package, tests included.
func (s source) parse(t *testing.T) []parsed {
	t.Helper()
	if files, done := parsedFiles[s.ImportPath]; done {
		return files
	}
	var files []parsed
	for _, name := range slices.Concat(s.GoFiles, s.CgoFiles, s.IgnoredGoFiles, s.TestGoFiles, s.XTestGoFiles) {
		full := filepath.Join(s.Dir, name)
		text, err := os.ReadFile(full)
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, full, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%s does not parse: %v", full, err)
			continue
		}
		files = append(files, parsed{
			name: filepath.ToSlash(filepath.Join(filepath.FromSlash(s.rel()), name)), file: f, fset: fset,
			lines: strings.Count(string(text), "\n"), made: generated.Match(text), test: strings.HasSuffix(name, "_test.go"),
		})
	}
	parsedFiles[s.ImportPath] = files
	return files
}

// parsedFiles keeps what was parsed, for tests that run one after the other.
var parsedFiles = map[string][]parsed{}

func TestPackageComments(t *testing.T) {
	for _, s := range sources(t) {
		var comment strings.Builder
		for _, p := range s.parse(t) {
			if p.file.Doc != nil && p.file.Name.Name == s.Name {
				comment.WriteString(p.file.Doc.Text())
			}
		}
		start := "Package " + s.Name + " "
		if s.Name == "main" {
			start = "Command " + filepath.Base(s.Dir) + " "
		}
		switch {
		case !strings.HasPrefix(comment.String(), start):
			t.Errorf("%s: the package comment must start with %q. Say what the package is for, and what it must not do.", s.ImportPath, start)
		case len(sentence.FindAllString(comment.String(), 2)) < 2:
			t.Errorf("%s: the package comment has one sentence. Say what the package is for, and what it must not do.", s.ImportPath)
		case !limits.MatchString(comment.String()):
			t.Errorf("%s: the package comment does not say what the package must not do.", s.ImportPath)
		}
	}
}

func TestNames(t *testing.T) {
	for _, s := range sources(t) {
		for _, name := range []string{s.Name, filepath.Base(s.ImportPath)} {
			if slices.Contains(bannedPackages, name) {
				t.Errorf("%s: %q says nothing about what is inside. Name the package for its one idea.", s.ImportPath, name)
			}
		}
		for _, p := range s.parse(t) {
			if slices.Contains(bannedFiles, filepath.Base(p.name)) {
				t.Errorf("%s: name the file for what it holds", p.name)
			}
		}
	}
}

func TestFiles(t *testing.T) {
	for _, s := range sources(t) {
		for _, p := range s.parse(t) {
			if !p.made && p.lines > maxFileLines {
				t.Errorf("%s has %d lines; the most is %d. It holds more than one idea: split it.", p.name, p.lines, maxFileLines)
			}
			if p.name == "cmd/cove/main.go" && p.lines > maxMainLines {
				t.Errorf("%s has %d lines; the most is %d. What it does belongs in internal/cli, where tests reach it.", p.name, p.lines, maxMainLines)
			}
			for _, d := range p.file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
					t.Errorf("%s: func init runs behind everybody's back. Call a constructor where the value is needed.", p.fset.Position(f.Pos()))
				}
			}
		}
	}
}

// TestSignatures looks for types of other modules in what a package shows:
// they would make every user of the package depend on a choice of ours.
func TestSignatures(t *testing.T) {
	for _, s := range sources(t) {
		if s.Name == "main" {
			continue
		}
		var code []parsed
		aliases := map[string]bool{}
		for _, p := range s.parse(t) {
			if !p.test {
				code = append(code, p)
				maps.Copy(aliases, foreignAliases(s, p.file))
			}
		}
		for _, p := range code {
			for _, n := range foreignTypes(s, p.file, aliases) {
				t.Errorf("%s: a type of another module is in an exported signature. Wrap it in a type of your own.", p.fset.Position(n.Pos()))
			}
		}
	}
}

func TestForeignTypes(t *testing.T) {
	s := source{}
	s.Module.Path = "example.org/ours"
	for code, found := range map[string]bool{
		"func F(c cobra.Command) {}":                      true,
		"func F() []*cobra.Command { return nil }":        true,
		"func (T) M(map[string]cobra.Command) {}":         true,
		"type S struct{ C *cobra.Command }":               true,
		"type S struct{ cobra.Command }":                  true,
		"type I interface{ M(cobra.Command) }":            true,
		"type c = cobra.Command":                          false,
		"type c = cobra.Command; func F(c) {}":            true,
		"type C = cobra.Command":                          true,
		"type C cobra.Command":                            true,
		"var V = cobra.New()":                             true,
		"var V *cobra.Command":                            true,
		"func F[C cobra.Constraint]() {}":                 true,
		"func F() { cobra.New() }":                        false,
		"func f(c cobra.Command) {}":                      false,
		"func (t) M(c cobra.Command) {}":                  false,
		"type S struct{ c *cobra.Command }":               false,
		"type s struct{ C *cobra.Command }":               false,
		"var v = cobra.New()":                             false,
		"func F(c ours.Command, w io.Writer) {}":          false,
		"func F(c yaml.Node) {}":                          true,
		"func F(c sh.Node) {}":                            true,
		"type S struct{ F func(cobra.Command) }":          true,
		"type S struct{ In struct{ C cobra.Command } }":   true,
		"type S struct{ in struct{ C cobra.Command } }":   false,
		"type I interface{ cobra.Constraint | ~string }":  true,
		"const C = 1; var V, w = 1, cobra.New()":          true,
		"func F(cove.Code) {}; type T struct{ x x.Node }": false,
	} {
		text := `package p
import ("io"; "github.com/spf13/cobra"; "github.com/goccy/go-yaml"; "mvdan.cc/sh/v3"; "example.org/ours"; x "golang.org/x/term")
` + code
		f, err := parser.ParseFile(token.NewFileSet(), "p.go", text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("%s: %v", code, err)
		}
		if got := len(foreignTypes(s, f, foreignAliases(s, f))) > 0; got != found {
			t.Errorf("%s: found %v, want %v", code, got, found)
		}
	}
}

// foreignTypes returns where a file shows types of other modules, under their
// own names or under those of aliases.
func foreignTypes(s source, f *ast.File, aliases map[string]bool) []ast.Node {
	var found []ast.Node
	foreign := foreignNames(s, f)
	for _, shown := range shownTypes(f) {
		ast.Inspect(shown, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && foreign[x.Name] {
					found = append(found, n)
				}
				return false
			case *ast.Field:
				ast.Inspect(n.Type, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok && aliases[id.Name] {
						found = append(found, n)
					}
					return true
				})
			}
			return true
		})
	}
	return found
}

// foreignAliases returns the aliases that a file gives to types of other
// modules.
func foreignAliases(s source, f *ast.File) map[string]bool {
	names := map[string]bool{}
	foreign := foreignNames(s, f)
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || !spec.Assign.IsValid() {
			return true
		}
		if sel, ok := spec.Type.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && foreign[x.Name] {
				names[spec.Name.Name] = true
			}
		}
		return true
	})
	return names
}

// foreignNames returns the names under which a file imports other modules.
func foreignNames(s source, f *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, spec := range f.Imports {
		imp := strings.Trim(spec.Path.Value, `"`)
		if !thirdParty(s, imp) {
			continue
		}
		if spec.Name != nil {
			names[spec.Name.Name] = true
			continue
		}
		parts := strings.Split(imp, "/")
		last := parts[len(parts)-1]
		if majorVersion.MatchString(last) {
			last = parts[len(parts)-2]
		}
		names[strings.TrimPrefix(last, "go-")] = true
		names[last] = true
	}
	return names
}

// shownTypes returns the expressions that a reader of the package's
// documentation sees: signatures, exported fields and embedded types, the
// types of exported values, and the values where no type is written.
func shownTypes(f *ast.File) []ast.Node {
	var shown []ast.Node
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && receiverExported(d) {
				shown = append(shown, d.Type)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				shown = append(shown, shownSpec(spec)...)
			}
		}
	}
	return shown
}

func shownSpec(spec ast.Spec) []ast.Node {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			return shownIn(s.Type)
		}
	case *ast.ValueSpec:
		if !slices.ContainsFunc(s.Names, (*ast.Ident).IsExported) {
			return nil
		}
		if s.Type != nil {
			return []ast.Node{s.Type}
		}
		var values []ast.Node
		for _, v := range s.Values {
			values = append(values, v)
		}
		return values
	}
	return nil
}

func shownIn(typ ast.Expr) []ast.Node {
	var fields *ast.FieldList
	switch t := typ.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		return []ast.Node{typ}
	}
	var shown []ast.Node
	for _, f := range fields.List {
		if len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
			shown = append(shown, f.Type)
		}
	}
	return shown
}

func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	exported := false
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			exported = exported || id.IsExported()
		}
		return true
	})
	return exported
}
