package typescript_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/providertest"
)

const (
	suiteTime = 10 * time.Minute // for one file of tests; what is slow is a loaded machine
	startTime = 2 * time.Minute
	maxLines  = 500
)

// TestSource reads the files of the SDK, so that a change to one runs the tests again,
// and holds them to the bounds of all source.
func TestSource(t *testing.T) {
	for _, dir := range []string{"src", "test", "examples"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if lines := bytes.Count(text, []byte("\n")); lines > maxLines {
				t.Errorf("%s has %d lines; the most is %d", path, lines, maxLines)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestLicense holds the package's copy to the license of all: npm takes no file from
// above the package.
func TestLicense(t *testing.T) {
	want, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile("LICENSE"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the LICENSE here is not the one of Cove: %v", err)
	}
}

// gate names the tests that the gate has, by a pattern, of each suite.
var gate = map[string]string{
	"code": ".", "commands": ".", "evicted": ".", "queue": ".", "renewal": ".", "sandbox": ".", "unit": ".",
	"faults": "the key is",
	"tls":    "is not",
}

// TestSDK runs the SDK's own tests, a file at a time. They start the servers that they
// talk to, and end them.
func TestSDK(t *testing.T) {
	tree := providertest.Needs(t, "sdks", "COVE_TEST_TYPESCRIPT")
	table, err := filepath.Abs(program.Input(t, "../scenarios"))
	if err != nil {
		t.Fatal(err)
	}
	env := append(plain(t), "COVE_BIN="+program.Cove(t), "COVE_TEST_SCENARIOS="+table, "COVE_TEST_TLS="+certificate(t))
	if !testing.Short() {
		env = append(env, "COVE_OTHER_VERSION="+program.Version(t, "v9.8.7"))
	}
	suites, err := filepath.Glob(filepath.Join(tree, "build", "*.test.js"))
	if err != nil || len(suites) == 0 {
		t.Fatalf("there are no tests in %s: %v", tree, err)
	}
	for _, suite := range suites {
		name := strings.TrimSuffix(filepath.Base(suite), ".test.js")
		t.Run(name, func(t *testing.T) {
			words := []string{filepath.Join(tree, "bin", "node"), "--test", "--test-reporter=spec", "--test-timeout=300000", suite}
			only := gate[name]
			if only == "" {
				tier.Full(t, "TestForms asks for every route; sandbox, commands and code use a server")
			} else if testing.Short() {
				words = slices.Insert(words, 1, "--test-name-pattern="+only)
			}
			if said := run(t, env, tree, words...); testing.Short() && strings.Contains(said, " pass 0\n") {
				t.Errorf("no test has a name like %q", only)
			}
		})
	}
}

// TestPackage installs the package as npm has it into a clean folder, and runs the quick
// start of the README and the example there, compiled with the types that are in it.
func TestPackage(t *testing.T) {
	tier.Full(t, "TestReadme in package sdk installs the package")
	tree := providertest.Needs(t, "sdks", "COVE_TEST_TYPESCRIPT")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private": true, "type": "module"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(plain(t), "PATH="+filepath.Join(tree, "bin")+":"+os.Getenv("PATH"))
	run(t, env, dir, "npm", "install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", filepath.Join(tree, "cove-sandbox.tgz"))
	env = append(env, serve(t)...)

	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	quick := regexp.MustCompile("(?s)```js\n(.*?)```").FindSubmatch(readme)
	if quick == nil {
		t.Fatal("the README has no quick start")
	}
	if err := os.WriteFile(filepath.Join(dir, "quick.js"), quick[1], 0o600); err != nil {
		t.Fatal(err)
	}
	if got := run(t, env, dir, "node", "quick.js"); got != "hello from a sandbox\n\n" {
		t.Errorf("the quick start printed %q", got)
	}

	if err := os.CopyFS(dir, os.DirFS("examples")); err != nil {
		t.Fatal(err)
	}
	words := []string{
		"node", filepath.Join(tree, "node_modules", "typescript", "bin", "tsc"), "--strict", "--target", "es2022", "--module", "nodenext",
		"--typeRoots", filepath.Join(tree, "node_modules", "@types"), "--types", "node", "--lib", "es2022,esnext.disposable",
	}
	for name := range examples {
		words = append(words, name+".ts")
	}
	run(t, env, dir, words...)
	for name, wants := range examples {
		got := run(t, env, dir, "node", name+".js")
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s did not print %q:\n%s", name, want, got)
			}
		}
	}
}

// examples are the programs in examples and what each prints, among other things.
var examples = map[string][]string{
	"conversation": {"(a new sandbox: it had no files yet)\nexit code 0\n1 data.csv\n", "\nexit code 0\na,b\n", "not run: "},
	"wrapper": {
		"1: task 1\n2: task 2\n3: task 3\n", "active sessions within bounds: true\n", "tasks: paused\ntasks: running\norphans removed: 0\n",
		"the code failed: the code failed with exit code 1: NameError: name 'potentially_failing_code' is not defined\na limit was reached\nthere is no such session\n",
	},
}

// certificate makes one for this machine that nobody trusts, and returns its folder.
func certificate(t *testing.T) string {
	t.Helper()
	root := run(t, os.Environ(), ".", "go", "env", "GOROOT")
	dir := t.TempDir()
	program := filepath.Join(strings.TrimSpace(root), "src", "crypto", "tls", "generate_cert.go")
	run(t, append(os.Environ(), "GOFLAGS="), dir, "go", "run", program, "-host", "127.0.0.1", "-ca", "-ecdsa-curve", "P256", "-duration", "1h")
	return dir
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

// serve runs a server until the test ends, and returns how an SDK is told of it.
func serve(t *testing.T) []string {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	cmd := exec.Command(program.Cove(t), "--json", "--home", home, "serve", "--addr", "127.0.0.1:0", "--log-level", "error")
	cmd.Env = append(plain(t), "POOL_SIZE=0")
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server: %v\n%s", err, log.String())
		}
	})
	slow := time.AfterFunc(startTime, func() { _ = cmd.Process.Kill() })
	defer slow.Stop()
	var at struct {
		URL     string `json:"url"`
		KeyFile string `json:"key_file"`
	}
	if err := json.NewDecoder(io.LimitReader(out, 64<<10)).Decode(&at); err != nil {
		t.Fatalf("the server did not start: %v\n%s", err, log.String())
	}
	key, err := os.ReadFile(at.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return []string{"COVE_URL=" + at.URL, "COVE_API_KEY=" + strings.TrimSpace(string(key))}
}
