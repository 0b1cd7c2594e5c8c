//go:build linux

package linuxtest

import (
	"flag"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// counterDir opens a directory that a child writes its coverage to, whoever it
// is by then and whatever it sees of the file tree.
func counterDir(t testing.TB) *os.File {
	t.Helper()
	path := t.TempDir()
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// exit ends a child. In a build with coverage, os.Exit writes the counters.
func exit(code int) {
	if testing.CoverMode() == "" || syscall.Fchdir(counterFD) != nil || os.Setenv("GOCOVERDIR", ".") != nil {
		syscall.Exit(code)
	}
	os.Exit(code)
}

// collect puts what a child wrote beside the counters of the tests.
func collect(t testing.TB, dir *os.File) {
	defer func() { _ = dir.Close() }()
	to := flag.Lookup("test.gocoverdir")
	if to == nil || to.Value.String() == "" {
		return
	}
	files, err := filepath.Glob(filepath.Join(dir.Name(), "cov*"))
	if err != nil {
		t.Errorf("coverage: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(to.Value.String(), filepath.Base(file)), text, 0o600)
		}
		if err != nil {
			t.Errorf("coverage: %v", err)
		}
	}
}
