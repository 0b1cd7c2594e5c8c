package sdk_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// examples are the programs in python/examples and what each prints.
var examples = map[string]struct {
	args []string
	want string
}{
	"quickstart.py": {want: "hello from a sandbox\nfiles stay\n42\n"},
	"bash_tool.py": {want: `{'status': 'success', 'stdout': '', 'stderr': '', 'return_code': 0, 'note': 'This is a new sandbox. It had no files yet.'}
{'status': 'success', 'stdout': '142\n', 'stderr': '', 'return_code': 0}
{'status': 'success', 'stdout': '', 'stderr': '', 'return_code': 0, 'note': 'This is a new sandbox. It had no files yet.'}
{'status': 'error', 'stdout': '', 'stderr': 'cove: blocked by rule "denied program": rm is denied by the command policy agent-bash (line 1, column 1)\n', 'return_code': 126, 'note': 'rm is denied by the command policy agent-bash'}
{'status': 'error', 'error': 'there is no conversation'}
`},
	"two_modes.py":       {args: []string{"remote", "URL"}, want: twoModes},
	"python_tool.py":     {want: "45\n---\nPython syntax error: '(' was never closed (line 1)\n---\nSecurity policy blocked import: subprocess\n---\nCode execution timed out after 1s\n---\n'to stdout\\n' 'to stderr\\nSystemExit: 3' 3 True False\n"},
	"provision.py":       {args: []string{"PROJECT"}, want: "tests: passed\nreport: 1 files\n"},
	"rest_api.py":        {want: "201 running\n0 True\nTrue\nended\nsession_closed\n"},
	"agent_over_http.py": {args: []string{"PROJECT"}, want: "tests: success\nstopped: stopped\nstarted: running\nfiles stayed: ['test_sample.py']\nafterwards: not_found\n"},
	"settings.py":        {want: "remote running\n{\"data\": [1, 2, 3]}\nmode: 'cloud' is no mode (use \"local\" or \"remote\")\n"},
	"wrapper_sizes.py": {args: []string{"VOLUMES/in", "VOLUMES/out"}, want: `small: 333332833333500000, 1.0 CPUs, 1g
medium: 333332833333500000, 2.0 CPUs, 2g
large: 333332833333500000, 4.0 CPUs, 4g
configured: medium 9 characters
planned: small 42 up to 50
planned: large 42 up to 5
refused: session_timeout: must be above 0 seconds
`},
	"wrapper_basic.py": {want: `output: Hello, World!, success: True, timed: True
remembered: x = 42
sessions for three operations: 1
medium: 333328333350000
command: from a command 0
`},
	"wrapper_advanced.py": {want: `1: task 1
2: task 2
3: task 3
active sessions within bounds: True memory counted: True
session of node small
session of python small
tasks: paused
tasks: running
orphans removed: 0
the code failed: the code failed with exit code 1: NameError: name 'potentially_failing_code' is not defined
a limit was reached
there is no such session
`},
	"wrapper_volumes.py": {args: []string{"VOLUMES/in", "VOLUMES/out"}, want: "writing to the input: OSError\nSOME DATA\n"},
	"health_check.py":    {want: "server: healthy\nprogram: works\ncode: 42\n"},
	"streaming.py":       {want: "step 1\nstep 2\nstep 3\nbackground: answer to everything\nterminal: True\n"},
}

const twoModes = "sent 20 of 20 bytes\nlines: 2\nfiles: ['/workspace/in.csv', '/workspace/out.txt']\nresult: ['1', '2']\n"

// TestPythonExamples runs every program in python/examples against a server with real
// sandboxes, and compares what it prints.
func TestPythonExamples(t *testing.T) {
	needProvider(t, "local")
	dir := shortDir(t)
	for name, text := range map[string]string{
		"in/data.txt":            "some data",
		"out/.keep":              "",
		"project/test_sample.py": "import unittest\n\n\nclass Sample(unittest.TestCase):\n    def test(self):\n        self.assertTrue(True)\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 { // what is root's alone is not for sandboxes to write to
		if err := os.Chown(filepath.Join(dir, "out"), 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	at := serve(t, "local", "COVE_VOLUMES="+dir+"/in,"+dir+"/out:rw")
	fill := strings.NewReplacer("URL", at.URL, "PROJECT", dir+"/project", "VOLUMES", dir)
	files, err := filepath.Glob("python/examples/*.py")
	if err != nil || len(files) != len(examples) {
		t.Fatalf("there are %d examples, and the table has %d (%v)", len(files), len(examples), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if filepath.Base(file) != "quickstart.py" {
				tier.Full(t, "quickstart.py")
			}
			example, known := examples[filepath.Base(file)]
			if !known {
				t.Fatal("is not in the table")
			}
			env := append(pythonEnv(t), append(at.env(), "SANDBOX_MODE=remote", "SANDBOX_URL="+at.URL)...)
			if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "import httpx") { // it shows the API with what others wrote
				env = append(env, "PYTHONPATH="+filepath.Join(providertest.Needs(t, "sdks", "COVE_TEST_SDKS"), "py-new", "lib"), "PYTHONWARNINGS=")
			}
			words := []string{python(t), filepath.Base(file)}
			for _, arg := range example.args {
				words = append(words, fill.Replace(arg))
			}
			if got := run(t, env, "python/examples", words...); got != example.want {
				t.Errorf("it printed\n%s\nand not\n%s", got, example.want)
			}
		})
	}
}
