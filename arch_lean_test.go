package cove_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLean keeps what only a server needs out of the lean program, whose start
// is what people wait for: docs/decisions/011-a-lean-program-around-the-whole-one.md.
func TestLean(t *testing.T) {
	// With -e, because the whole program that the lean one carries is not there.
	out, err := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "-tags", "lean", "./cmd/cove").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if !strings.Contains(string(out), "/provider/local\n") {
		t.Fatal("go list does not know the lean program")
	}
	for dep := range strings.Lines(string(out)) {
		dep = strings.TrimSpace(dep)
		for _, heavy := range []string{"net/http", "crypto/tls", "github.com/prometheus/", "github.com/moby/", "gvisor.dev/", "go.opentelemetry.io/", "modernc.org/sqlite", "github.com/redis/", "github.com/cove-sandbox/cove/internal/cluster", "github.com/cove-sandbox/cove/internal/chat", "github.com/cove-sandbox/cove/internal/duckexe", "github.com/cove-sandbox/cove/internal/gvisorexe", "github.com/cove-sandbox/cove/internal/telemetry"} {
			if strings.HasPrefix(dep, heavy) {
				t.Errorf("the lean program links %s. Begin the file that imports it with //go:build !lean.", dep)
			}
		}
	}
}

// TestLeanCompilesNothingAtItsStart keeps patterns out of what the lean program does
// before main: one that is compiled there may take longer than all the rest.
func TestLeanCompilesNothingAtItsStart(t *testing.T) {
	const form = `{{if .Module}}{{if .Module.Main}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`
	out, err := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "-tags", "lean", "-f", form, "./cmd/cove").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	looked := 0
	for name := range strings.Lines(string(out)) {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		looked++
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR && compiles(g) {
				t.Errorf("%s compiles a pattern when the program starts. Do it with sync.OnceValue, or without a pattern.", filepath.Base(name))
			}
		}
	}
	if looked < 100 {
		t.Fatalf("go list names %d files of the lean program", looked)
	}
}

// compiles reports whether a declaration compiles a pattern, and not only a function
// in it.
func compiles(d *ast.GenDecl) (found bool) {
	ast.Inspect(d, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "regexp" && strings.HasPrefix(s.Sel.Name, "MustCompile") {
				found = true
			}
		}
		_, inner := n.(*ast.FuncLit)
		return !inner
	})
	return found
}
