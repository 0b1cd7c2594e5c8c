package sdk_test

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// frameworks is an interpreter, and an environment in which it finds the SDK and what
// others made that the adapters are for.
func frameworks(t *testing.T) (interpreter string, env []string) {
	t.Helper()
	tree := filepath.Join(providertest.Needs(t, "sdks", "COVE_TEST_SDKS"), "tools-py")
	// The one that they were installed for, which finds nothing but them by itself.
	interpreter = strings.TrimSpace(run(t, plain(), ".", filepath.Join(tree, "bin", "python3"), "-c", "import sys; print(sys.executable)"))
	src, err := filepath.Abs("python/src")
	if err != nil {
		t.Fatal(err)
	}
	return interpreter, append(plain(), "PYTHONPATH="+src+string(os.PathListSeparator)+filepath.Join(tree, "lib"), "PYTHONDONTWRITEBYTECODE=1", "PYTHONUTF8=1",
		"LANGSMITH_TRACING=false", "LANGCHAIN_TRACING_V2=false", "OPENAI_AGENTS_DISABLE_TRACING=1")
}

type input = map[string]any

// adapters are the programs in python/examples/adapters: the API that each speaks to its
// model, what the model asks for, and what it must be told.
var adapters = map[string]struct {
	serve  modelled
	model  string // "" is scripted
	script []call
	want   string // beside what the model says at last
}{
	"function_calling.py": {serve: chat, script: []call{
		{"write_file", input{"path": "n.txt", "content": "40\n"}, "n.txt is written."},
		{"python", input{"code": "x = int(open('n.txt').read())"}, "(no output)"},
		{"python", input{"code": "x + 2"}, "42"},
		{"bash", input{"command": "cd /tmp; y=7; ls /nosuch"}, "[it failed with exit code 2]"},
		{"bash", input{"command": "echo $PWD $y"}, "/tmp 7"},
		{"edit_file", input{"path": "n.txt", "old": "40", "new": "41"}, "n.txt is changed."},
		{"read_file", input{"path": "n.txt"}, "41"},
		{"list_files", input{}, "/workspace/n.txt (3 bytes)"},
		{"read_file", input{"path": "nosuch"}, "Error (not_found)"},
		{"python", input{"cod": "1"}, "Error (invalid): python: there is no argument 'cod' (use code)"},
		{"perl", input{}, "Error (invalid): there is no tool 'perl'"},
	}},
	"langchain_tools.py": {serve: messages.play, model: "anthropic:scripted", script: []call{
		{"python", input{"code": "import math; r = 3"}, `(no output)`},
		{"python", input{"code": "round(math.pi * r ** 2)"}, `28`},
		{"bash", input{"command": "echo $((6 * 7)) > a; cat a"}, `42`},
		{"read_file", input{"path": "a", "offset": "one"}, `must be a whole number`},
		{"python", input{"code": "1 / 0"}, `ZeroDivisionError`},
	}},
	"langchain_bash_tool.py": {serve: messages.play, model: "anthropic:scripted", script: []call{
		{"execute_bash_command", input{"command": "echo 142 > data"}, `\"return_code\": 0`},
		{"execute_bash_command", input{"command": "cat data"}, `142`},
		{"execute_bash_command", input{"command": "rm data"}, `blocked`},
	}},
	"deepagents_backend.py": {serve: messages.play, model: "anthropic:scripted", script: []call{
		{"write_file", input{"file_path": "/workspace/sum.py", "content": "print(sum(range(10)))\n"}, `/workspace/sum.py`},
		{"execute", input{"command": "python3 /workspace/sum.py && id -un"}, `45\nsandbox`},
		{"edit_file", input{"file_path": "/workspace/sum.py", "old_string": "10", "new_string": "11"}, `/workspace/sum.py`},
		{"execute", input{"command": "python3 sum.py; exit 3"}, `55`},
		{"read_file", input{"file_path": "/workspace/sum.py"}, `range(11)`},
		{"ls", input{"path": "/workspace"}, `/workspace/sum.py`},
		{"grep", input{"pattern": "range", "path": "/workspace"}, `/workspace/sum.py`},
		{"read_file", input{"file_path": "/workspace/nosuch"}, `not`},
	}},
	"openai_agents_tools.py": {serve: responses.play, script: []call{
		{"shell", input{"commands": []string{"echo 42 > f", "cat f; exit 3"}, "max_output_length": 1000}, `{"stdout":"42\n","stderr":"","outcome":{"type":"exit","exit_code":3}}`},
		{"shell", input{"commands": []string{"sleep 100"}, "timeout_ms": 500}, `"outcome":{"type":"timeout"}`},
		{"python", input{"code": "open('f').read()"}, `'42\\n'`},
		{"bash", input{"command": "wc -c < f"}, `"output":"3"`},
	}},
	"anthropic_bash.py": {serve: messages.play, script: []call{
		{"bash", input{"command": "mkdir -p d && cd d && x=41 && echo made"}, `made`},
		{"bash", input{"command": "pwd; echo $((x+1)) > f; ls /nosuch"}, `[it failed with exit code 2]`},
		{"bash", input{"restart": true}, `The shell was started again. Files are still there.`},
		{"bash", input{"command": `pwd; cat d/f; echo "x is ${x-gone}"`}, `/workspace\n42\nx is gone`},
	}},
	"anthropic_code_execution.py": {serve: messages.play, want: "/workspace/data.csv 8 bytes\n", script: []call{
		{"text_editor_code_execution", input{"command": "create", "path": "/workspace/data.csv", "file_text": "a,1\n"}, `\"is_file_update\": false`},
		{"text_editor_code_execution", input{"command": "str_replace", "path": "/workspace/data.csv", "old_str": "1", "new_str": "2"}, `\"lines\": [\"-1\", \"+2\"]`},
		{"text_editor_code_execution", input{"command": "view", "path": "/workspace/data.csv"}, `\"content\": \"a,2\"`},
		{"code_execution", input{"code": "print(open('data.csv').read().strip())"}, `\"stdout\": \"a,2\"`},
		{"bash_code_execution", input{"command": "echo b,3 >> data.csv; ls /nosuch"}, `\"return_code\": 2, \"content\": [{\"type\": \"bash_code_execution_output\", \"file_id\": \"/workspace/data.csv\"}]`},
		{"text_editor_code_execution", input{"command": "view", "path": "/workspace/nosuch"}, `\"error_code\": \"file_not_found\"`},
	}},
}

// TestPythonAdapters runs every program in python/examples/adapters with the framework that
// it is for, real sandboxes, and a model that follows a script.
func TestPythonAdapters(t *testing.T) {
	tier.Full(t, "frameworks of others; TestPython has the SDK that the adapters call")
	needProvider(t, "local")
	interpreter, env := frameworks(t)
	at := serve(t, "local")
	files, err := filepath.Glob("python/examples/adapters/*.py")
	if err != nil || len(files) != len(adapters) {
		t.Fatalf("there are %d examples, and the table has %d (%v)", len(files), len(adapters), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			example, known := adapters[filepath.Base(file)]
			if !known {
				t.Fatal("is not in the table")
			}
			model, check := example.serve(t, example.script)
			env := slices.Concat(env, at.env(), model, []string{"MODEL=" + cmp.Or(example.model, "scripted")})
			got := run(t, env, "python/examples/adapters", interpreter, filepath.Base(file), "do it")
			check()
			if got != done+"\n"+example.want {
				t.Errorf("it printed\n%s", got)
			}
		})
	}
}

// TestPythonFunctions runs the tests of what the adapters stand on, which needs real
// programs, and those of the adapters with the frameworks.
func TestPythonFunctions(t *testing.T) {
	tier.Full(t, "frameworks of others; TestPython has the SDK that the functions call")
	needProvider(t, "local")
	interpreter, env := frameworks(t)
	at := serve(t, "local")
	t.Log(run(t, append(pythonEnv(t), at.env()...), "python/tests", python(t), "-m", "unittest", "-v", "test_functions"))
	t.Log(run(t, append(env, at.env()...), "python/tests", interpreter, "-m", "unittest", "-v", "test_adapters"))
}
