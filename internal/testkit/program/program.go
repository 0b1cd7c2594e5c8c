// Package program provides the executables of cmd/cove and cmd/cove-agent to tests. A test
// run builds each once and names it in COVE_TEST_COVE and COVE_TEST_AGENT. Only tests
// import it, and it must not know what the programs do.
package program

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/cove-sandbox/cove"

var built struct {
	mu    sync.Mutex
	dir   string
	paths map[string]bool // what was built
}

// Main runs the tests of m and removes the executables that were built for them.
func Main(m *testing.M) { Exit(m.Run()) }

// Exit removes the executables and ends the process. It is for a TestMain that cannot
// call Main.
func Exit(code int) {
	if err := Remove(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Remove removes the executables that were built.
func Remove() error {
	built.mu.Lock()
	defer built.mu.Unlock()
	if built.dir == "" {
		return nil
	}
	err := os.RemoveAll(built.dir)
	built.dir, built.paths = "", nil
	return err
}

// Cove returns the path of the executable that COVE_TEST_COVE names. Where the variable
// is not set, it builds cove once per test process.
func Cove(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("COVE_TEST_COVE"); path != "" {
		return path
	}
	return Version(t, "")
}

// Agent returns the path of the executable that COVE_TEST_AGENT names: the agent of
// sandboxes, static and small. Where the variable is not set, it builds the agent once
// per test process.
func Agent(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("COVE_TEST_AGENT"); path != "" {
		return path
	}
	return build(t, "cove-agent", "cove-agent", "-s -w")
}

// Version returns the path of a cove that reports version. It is built once per test
// process.
func Version(t testing.TB, version string) string {
	t.Helper()
	flags := "-s -w"
	if version != "" {
		flags += " -X " + module + "/internal/cli.version=" + version
	}
	return build(t, "cove", filepath.Join("cove"+version, "cove"), flags)
}

// build builds a program of cmd once per test process. Name is the file, relative to the
// folder of all that are built.
func build(t testing.TB, program, name, flags string) string {
	t.Helper()
	built.mu.Lock()
	defer built.mu.Unlock()
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "cove-program-") //nolint:usetesting // all tests of the process share it
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // tests execute the program as other users
			t.Fatal(err)
		}
		built.dir, built.paths = dir, map[string]bool{}
	}
	path := filepath.Join(built.dir, name)
	if built.paths[path] {
		return path
	}
	Watch(t)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags="+flags, "-o", path, module+"/cmd/"+program) //nolint:gosec // words of ours
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", program, err, out)
	}
	built.paths[path] = true
	return path
}

// Watch makes all sources of the module inputs of a test that builds programs of them.
func Watch(t testing.TB) {
	t.Helper()
	root, err := os.Getwd()
	for ; err == nil; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			Input(t, root)
			return
		}
		if filepath.Dir(root) == root {
			break
		}
	}
	t.Fatalf("no go.mod above the working directory: %v", err)
}

// Input makes a file, or all files of a folder, inputs of a test that has another
// program read them, and returns the path. The go command records the files that a test
// looks at, and runs it again when one of them has changed.
func Input(t testing.TB, path string) string {
	t.Helper()
	skip := []string{"node_modules", "bin", "testdata", "__pycache__"}
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && name != path:
			return nil // another process removed it
		case err != nil:
			return err
		case !entry.IsDir():
			if !strings.HasSuffix(name, "_test.go") {
				_, _ = os.Stat(name) // recorded is what it is, and also that it is not there
			}
		case name != path && (strings.HasPrefix(entry.Name(), ".") || slices.Contains(skip, entry.Name())):
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}
