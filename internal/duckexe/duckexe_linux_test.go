package duckexe_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckexe"
)

// A test is a plain build.
func TestPlainBuildHasNone(t *testing.T) {
	tool, err := duckexe.Installed(t.TempDir())
	if tool != (cove.Tool{}) || cove.CodeOf(err) != cove.Unsupported {
		t.Fatalf("%+v, %v", tool, err)
	}
	if r := cove.RemedyOf(err); !strings.Contains(r, "make build") || !strings.Contains(r, "C compiler") {
		t.Errorf("the remedy is %q", r)
	}
}

func TestInstalled(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte("quack")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(duckexe.Pack(b.Bytes(), "00000000000000aa"))
	dir := t.TempDir()
	got, err := duckexe.Installed(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := cove.Tool{Name: "cove-duckdb", ID: "00000000000000aa", Dir: filepath.Join(dir, "cove-duckdb-00000000000000aa")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if content, err := os.ReadFile(filepath.Join(got.Dir, got.Name)); err != nil || string(content) != "quack" {
		t.Errorf("%q, %v", content, err)
	}
	if _, err := duckexe.Installed(filepath.Join(dir, "none")); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("without the directory: %v", err)
	}
}
