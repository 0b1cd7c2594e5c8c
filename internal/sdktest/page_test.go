package sdktest_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/sdktest"
)

var update = flag.Bool("update", false, "rewrite the table of docs/compat.md")

const (
	page = "../../docs/compat.md"
	mark = "<!-- The rest is written by the tests of internal/sdktest, with -update. -->\n"
)

// comparePage compares the table of this run with that of the page, or rewrites it.
// What could not be tried here is taken from there.
func comparePage(t *testing.T, columns []sdktest.Column) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, old, ok := strings.Cut(string(text), mark)
	if !ok {
		t.Fatalf("%s lacks the line %q", page, mark)
	}
	table := sdktest.Fill(sdktest.Table(columns), old)
	if *update {
		if t.Failed() {
			t.Fatal("not written, since not all is well")
		}
		if err := os.WriteFile(page, []byte(head+mark+table), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(old, table); diff != "" {
		t.Errorf("docs/compat.md is not what was seen; make golden rewrites it (-page +seen):\n%s", diff)
	}
}

// title names a column by the version that the lock has.
func title(t *testing.T, tree, mode string) string {
	t.Helper()
	kind := "PyPI"
	var version string
	if strings.HasPrefix(tree, "js-") {
		kind = "npm"
		var p struct{ Dependencies map[string]string }
		text, err := os.ReadFile(filepath.Join("locks", tree, "package.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatal(err)
		}
		version = p.Dependencies["e2b"]
	} else {
		text, err := os.ReadFile(filepath.Join("locks", tree+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut("\n"+string(text), "\ne2b==")
		version, _, _ = strings.Cut(rest, " ")
	}
	if version == "" {
		t.Fatalf("the lock of %s has no version of e2b", tree)
	}
	return kind + " " + version + ", " + mode
}
