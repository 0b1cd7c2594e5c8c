package sdk_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/providertest"
	"github.com/cove-sandbox/cove/sdk/wiretest"
)

const (
	suiteTime    = 10 * time.Minute // for the tests of an SDK; what is slow is a loaded machine
	maxFileLines = 500
	fewestRoutes = 40 // that the SDK knows, so that a test which asks nothing fails
)

// python is an interpreter that the SDK works with.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		// Its own path, since the one that is found may choose between several.
		out, err := exec.CommandContext(t.Context(), name, "-c", "import sys; assert sys.version_info >= (3, 9); print(sys.executable)").Output()
		if err == nil {
			return strings.TrimSpace(string(out))
		}
	}
	providertest.Lacks(t, "python", "there is no Python 3.9")
	return ""
}

// pythonEnv is an environment in which the SDK is found where it is.
func pythonEnv(t *testing.T) []string {
	t.Helper()
	src, err := filepath.Abs(program.Input(t, "python/src"))
	if err != nil {
		t.Fatal(err)
	}
	return append(plain(), "PYTHONPATH="+src, "PYTHONDONTWRITEBYTECODE=1", "PYTHONUTF8=1", "PYTHONWARNINGS=error")
}

// TestPythonSource reads the files of the SDK, so that a change to one runs the tests
// again, and holds them to the bounds of all source.
func TestPythonSource(t *testing.T) {
	err := filepath.WalkDir("python", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".py") {
			return err
		}
		text, err := os.ReadFile(path)
		if lines := bytes.Count(text, []byte("\n")); lines > maxFileLines {
			t.Errorf("%s has %d lines; the most is %d", path, lines, maxFileLines)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, pythonEnv(t), "python", python(t), "mirror.py", "--check")
}

// TestPythonTypes has mypy check the package, as strictly as it can.
func TestPythonTypes(t *testing.T) {
	tier.Full(t, "mypy changes nothing that runs")
	mypy := filepath.Join(providertest.Needs(t, "sdks", "COVE_TEST_SDKS"), "mypy", "bin", "python3")
	run(t, plain(), "python", mypy, "-m", "mypy", "--no-incremental", "--cache-dir=/dev/null", "--python-version=3.9")
}

// TestPythonParts runs the tests that need no server.
func TestPythonParts(t *testing.T) {
	unittest(t, "test_parts", pythonEnv(t))
}

// TestPythonForms has the SDK ask all that it can ask, and compares that, and what it
// reads, with docs/openapi.json.
func TestPythonForms(t *testing.T) {
	at := wiretest.Serve(t)
	defer func() {
		for _, fault := range at.Faults() {
			t.Error(fault)
		}
	}()
	unittest(t, "test_forms", append(pythonEnv(t), "COVE_DESCRIBED="+at.URL))
	if asked := at.Asked(); len(asked) < fewestRoutes {
		t.Errorf("only %q were asked for", asked)
	}
}

// TestPython runs the tests of the SDK against a server, of the provider fake where that
// is enough.
func TestPython(t *testing.T) {
	for _, suite := range []string{"test_sandbox", "test_async", "test_sessions", "test_wrapper", "test_callers"} {
		t.Run(suite, func(t *testing.T) {
			if suite == "test_async" {
				tier.Full(t, "test_sandbox, from whose source mirror.py makes the other one")
			}
			unittest(t, suite, append(pythonEnv(t), serve(t, "fake").env()...))
		})
	}
}

// TestPythonFaults has the tests start, kill and restart servers of their own.
func TestPythonFaults(t *testing.T) {
	tier.Full(t, "the table of scenarios has servers that are killed; TestReadme starts cove in local mode")
	dir := shortDir(t)
	env := append(pythonEnv(t), "COVE_BIN="+program.Cove(t), "TMPDIR="+dir, "HOME="+dir)
	for _, suite := range []string{"test_faults", "test_local"} {
		t.Run(suite, func(t *testing.T) { unittest(t, suite, env) })
	}
}

// TestPythonEvicted has the tests start a server with room for one session.
func TestPythonEvicted(t *testing.T) {
	dir := shortDir(t)
	unittest(t, "test_evicted", append(pythonEnv(t), "COVE_BIN="+program.Cove(t), "TMPDIR="+dir, "HOME="+dir))
}

// TestPythonPrograms runs the tests that need real programs.
func TestPythonPrograms(t *testing.T) {
	tier.Full(t, "TestReadme and TestPythonExamples run real programs")
	needProvider(t, "local")
	unittest(t, "test_programs", append(append(pythonEnv(t), serve(t, "local").env()...), "COVE_BIN="+program.Cove(t), "TMPDIR="+shortDir(t)))
}

func unittest(t *testing.T, suite string, env []string) {
	t.Helper()
	t.Log(run(t, env, program.Input(t, "python/tests"), python(t), "-m", "unittest", "-v", suite))
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
		t.Fatalf("%s: %v\n%s", strings.Join(words[1:], " "), err, out)
	}
	return string(out)
}
