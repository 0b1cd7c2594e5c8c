package flock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cove-sandbox/cove/internal/flock"
)

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestTry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	one, two, three := open(t, path), open(t, path), open(t, path)
	for _, step := range []struct {
		what string
		file *os.File
		kind flock.Kind
		ok   bool
	}{
		{"the first", one, flock.Exclusive, true},
		{"another beside it", two, flock.Exclusive, false},
		{"one that would share", two, flock.Shared, false},
		{"the first, which now shares", one, flock.Shared, true},
		{"another that shares", two, flock.Shared, true},
		{"one that does not", three, flock.Exclusive, false},
	} {
		if ok, err := flock.Try(step.file, step.kind); ok != step.ok || err != nil {
			t.Errorf("%s: %v, %v", step.what, ok, err)
		}
	}
	for _, f := range []*os.File{one, two} {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if ok, err := flock.Try(three, flock.Exclusive); !ok || err != nil {
		t.Errorf("after all others have closed it: %v, %v", ok, err)
	}
	if ok, err := flock.Try(one, flock.Shared); ok || err == nil {
		t.Errorf("a closed file: %v, %v", ok, err)
	}
}
