package web_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/providertest"
)

const (
	suiteTime = 10 * time.Minute // for one file of tests; what is slow is a loaded machine
	maxLines  = 500
)

// TestSource reads the files of the console, so that a change to one runs the tests
// again, and holds them to the bounds of all source.
func TestSource(t *testing.T) {
	for _, dir := range []string{"src", "test"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if lines := bytes.Count(text, []byte("\n")); lines > maxLines {
				t.Errorf("%s has %d lines; the most is %d", path, lines, maxLines)
			}
			for _, sink := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "dangerously"} {
				if dir == "src" && bytes.Contains(text, []byte(sink)) {
					t.Errorf("%s has %s: what it shows could run. Make elements and texts of it.", path, sink)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// gate names the tests that the gate has, by a pattern, of each suite.
var gate = map[string]string{
	"walk":    "from the link to a plot and a terminal in eight steps",
	"reach":   ".",
	"hostile": "^in |has no way out|cannot reach the console",
	"faults":  "a wrong key|a link that was used",
}

// TestConsole opens the console in a browser, a file of tests at a time. They start
// the servers that they look at, and end them.
func TestConsole(t *testing.T) {
	tree := providertest.Needs(t, "console", "COVE_TEST_CONSOLE")
	browser := providertest.Needs(t, "console", "COVE_TEST_CHROMIUM")
	env := append(plain(t), "COVE_BIN="+program.Cove(t), "COVE_TEST_CHROMIUM="+browser, "COVE_CONSOLE="+filepath.Join(tree, "console.tar"))
	if duckdb := os.Getenv("COVE_TEST_DUCKDB"); duckdb != "" {
		env = append(env, "COVE_DUCKDB="+duckdb)
	}
	suites, err := filepath.Glob(filepath.Join(tree, "*.test.mjs"))
	if err != nil || len(suites) == 0 {
		t.Fatalf("there are no tests in %s: %v", tree, err)
	}
	for _, suite := range suites {
		name := strings.TrimSuffix(filepath.Base(suite), ".test.mjs")
		t.Run(name, func(t *testing.T) {
			words := []string{filepath.Join(tree, "bin", "node"), "--test", "--test-reporter=spec", "--test-timeout=300000", suite}
			if testing.Short() {
				only := gate[name]
				if only == "" {
					tier.Full(t, "walk signs in and opens a sandbox; in reach and hostile, content of a sandbox attacks the console")
				}
				words = slices.Insert(words, 1, "--test-name-pattern="+only)
			}
			if name != "looks" { // which counts frames: the others wait until it has ended
				t.Parallel() // each has a server and a browser of its own, and waits for much
			}
			said := run(t, env, tree, words...)
			if testing.Short() && strings.Contains(said, " pass 0\n") {
				t.Errorf("no test has a name like %q", gate[name])
			}
			t.Log(said)
		})
	}
}

// run runs a program in a folder to its end, and returns what it wrote.
func run(t *testing.T, env []string, dir string, words ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), suiteTime, errors.New("it takes too long"))
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir, cmd.Env = dir, env
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return string(out)
}

// plain is the environment without settings of Cove's, and with a place for files that
// leaves room for the paths of sockets.
func plain(t *testing.T) (env []string) {
	t.Helper()
	for _, one := range os.Environ() {
		if !strings.HasPrefix(one, "COVE_") && !strings.HasPrefix(one, "SANDBOX_") {
			env = append(env, one)
		}
	}
	dir, err := os.MkdirTemp("", "cove") //nolint:usetesting // that one's path is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return append(env, "TMPDIR="+dir, "HOME="+dir)
}

func TestMain(m *testing.M) { program.Main(m) }
