package kernel_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/kernel"
)

// open starts an interpreter that is closed with the test.
func open(t *testing.T, spec cove.KernelSpec) *bench {
	t.Helper()
	return openIn(t, newHost(t), spec)
}

// openIn starts an interpreter on a host.
func openIn(t *testing.T, h *host, spec cove.KernelSpec) *bench {
	t.Helper()
	b := &bench{t: t, host: h}
	k, err := kernel.New().Open(t.Context(), b.host, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	b.k = k
	return b
}

func python(t *testing.T) *bench {
	t.Helper()
	need(t, "/usr/bin/python3")
	return open(t, cove.KernelSpec{Language: "python"})
}

// run runs code and fails the test where that cannot be done.
func (b *bench) run(code string) (*cove.CodeResult, *heard) {
	b.t.Helper()
	return b.within(code, cove.Limits{Wall: time.Minute})
}

func (b *bench) within(code string, limits cove.Limits) (*cove.CodeResult, *heard) {
	b.t.Helper()
	h := &heard{keep: 1 << 20}
	r, err := b.k.Run(b.t.Context(), cove.KernelRun{Code: code, Limits: limits, OnOutput: h.hear})
	if err != nil {
		b.t.Fatalf("%.80q: %v", code, err)
	}
	return r, h
}

// prints runs code that must do nothing but print.
func (b *bench) prints(code, want string) {
	b.t.Helper()
	r, h := b.run(code)
	if r.Error != nil || r.ExitCode != 0 || h.all.String() != want {
		b.t.Errorf("%.80q wrote %q with the error %+v, want %q", code, h.all.String(), r.Error, want)
	}
}

// value is the only value of code, in all its forms.
func (b *bench) value(code string) cove.Rich {
	b.t.Helper()
	r, h := b.run(code)
	if r.Error != nil || len(r.Results) != 1 {
		b.t.Fatalf("%.80q has the values %v, the error %+v and wrote %q", code, r.Results, r.Error, h.all.String())
	}
	return r.Results[0]
}

func TestPythonRemembers(t *testing.T) {
	b := python(t)
	b.prints("x = 42", "")
	b.prints("print(x)", "42\n")
	b.prints("def f():\n    return x + 1\nimport math as m", "")
	b.prints("print(f(), m.pi > 3)", "43 True\n")
	b.prints("import os; os.mkdir('d'); os.chdir('d'); os.environ['WORD'] = 'kept'", "")
	b.prints("print(os.path.basename(os.getcwd()), end=' '); n = os.system('echo $WORD')", "d kept\n")
	b.prints("if __name__ == '__main__':\n    print(__name__, len(__import__('sys').argv))", "__main__ 1\n")
	b.prints("import pickle\nclass C: pass\nprint(type(pickle.loads(pickle.dumps(C()))).__name__)", "C\n")
	b.prints("", "")
	b.prints("# nothing", "")
}

func TestPythonValues(t *testing.T) {
	b := python(t)
	for code, want := range map[string]string{
		"1 + 1":                   "2",
		"'a'":                     "'a'",
		"x = 5; x":                "5",
		"[1, {'a': (2,)}]":        "[1, {'a': (2,)}]",
		"_":                       "(set below)",
		"class A: pass\nA":        "<class '__main__.A'>",
		"for i in range(3): i\ni": "2",
		"'\\ud800'":               `'\ud800'`,
	} {
		if code == "_" {
			continue
		}
		if got := b.value(code); got["text/plain"] != want {
			t.Errorf("%q has the value %v, want %s", code, got, want)
		}
	}
	for _, code := range []string{"None", "x = 1", "def f(): 1", "for i in range(3): i", "print()"} {
		if r, _ := b.run(code); len(r.Results) > 0 || r.Error != nil {
			t.Errorf("%q has the values %v and the error %+v", code, r.Results, r.Error)
		}
	}
	b.value("6 * 7")
	if got := b.value("_ + 1"); got["text/plain"] != "43" {
		t.Errorf("the last value is %v", got)
	}
	if got := b.value("'x' * 10**6")["text/plain"]; len(got) > 300<<10 || !strings.Contains(got, "more characters") {
		t.Errorf("a long text has %d bytes", len(got))
	}
}

func TestPythonForms(t *testing.T) {
	b := python(t)
	for _, c := range []struct {
		name, class string
		want        cove.Rich
	}{
		{"html", "def _repr_html_(self): return '<b>x</b>'", cove.Rich{"text/html": "<b>x</b>"}},
		{"markdown", "def _repr_markdown_(self): return '*x*'", cove.Rich{"text/markdown": "*x*"}},
		{"svg", "def _repr_svg_(self): return '<svg/>'", cove.Rich{"image/svg+xml": "<svg/>"}},
		{"png", "def _repr_png_(self): return b'\\x89PNG'", cove.Rich{"image/png": "iVBORw=="}},
		{"jpeg with metadata", "def _repr_jpeg_(self): return b'\\xff', {'width': 1}", cove.Rich{"image/jpeg": "/w=="}},
		{"json", "def _repr_json_(self): return {'a': [1, None]}", cove.Rich{"application/json": `{"a": [1, null]}`}},
		{"latex", "def _repr_latex_(self): return '$x$'", cove.Rich{"text/latex": "$x$"}},
		{"none", "def _repr_html_(self): return None", cove.Rich{}},
		{"raises", "def _repr_html_(self): 1/0", cove.Rich{}},
		{
			"bundle", "def _repr_mimebundle_(self, include=None, exclude=None): return {'text/plain': 'T', 'text/x.own+v-1': 'o', 'bad type': 'no'}",
			cove.Rich{"text/plain": "T", "text/x.own+v-1": "o"},
		},
		{"bundle with metadata", "def _repr_mimebundle_(self, **k): return {'text/html': 'h'}, {}", cove.Rich{"text/html": "h"}},
		{"bundle and method", "def _repr_mimebundle_(self, **k): return {'text/html': 'h'}\n    def _repr_json_(self): return [1]", cove.Rich{"text/html": "h", "application/json": "[1]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := b.value("class V:\n    def __repr__(self): return 'V!'\n    " + c.class + "\nV()")
			if _, ok := c.want["text/plain"]; !ok {
				c.want["text/plain"] = "V!"
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
	if got := b.value("class R:\n    def __repr__(self): raise ValueError\nR()")["text/plain"]; got != "<R: its repr raised ValueError>" {
		t.Errorf("a repr that raises is %q", got)
	}
	r, h := b.run("print('a'); display(1, 'two'); print('b')\n3")
	want := []cove.Rich{{"text/plain": "1"}, {"text/plain": "'two'"}, {"text/plain": "3"}}
	if d := cmp.Diff(want, r.Results); d != "" || h.stdout() != "a\nb\n" {
		t.Errorf("%s %q", d, h.stdout())
	}
	if r, _ := b.run("import threading\nclass L:\n    def _repr_html_(self): return 'l' * 50000\nts = [threading.Thread(target=display, args=(L(),) * 4) for _ in range(8)]\nfor t in ts: t.start()\nfor t in ts: t.join()"); len(r.Results) != 32 {
		t.Errorf("of 32 values that threads show at once %d came", len(r.Results))
	}
	if r, _ := b.run("for i in range(100): display(i)"); len(r.Results) != 65 || !strings.Contains(r.Results[64]["text/plain"], "more was shown") {
		t.Errorf("100 values are %d: %v", len(r.Results), r.Results[len(r.Results)-1])
	}
	if r, _ := b.run("class B:\n    def _repr_html_(self): return 'x' * (3 << 20)\nfor i in range(4): display(B())"); len(r.Results) != 3 || r.Results[0]["text/html"] != strings.Repeat("x", 3<<20) {
		t.Errorf("values of 12 MB are %d", len(r.Results))
	}
}

func TestPythonErrors(t *testing.T) {
	b := python(t)
	for _, c := range []struct {
		code, name, value string
		line              int
		has               []string
	}{
		{"x = 1\n1/0", "ZeroDivisionError", "division by zero", 2, []string{`File "<cell `, "line 2, in <module>", "1/0"}},
		{"def f():\n    raise KeyError('k')\n\nf()", "KeyError", "'k'", 2, []string{"in <module>", "in f", "raise KeyError"}},
		{"x = (", "SyntaxError", "'(' was never closed", 1, []string{"SyntaxError"}},
		{"a\n b", "IndentationError", "unexpected indent", 2, nil},
		{"input('name? ')", "EOFError", "input() is not possible here", 1, []string{"input('name? ')"}},
		{"try:\n    1/0\nexcept Exception as e:\n    raise ValueError('bad') from e", "ValueError", "bad", 4, []string{"ZeroDivisionError", "direct cause"}},
		{"class E(Exception):\n    def __str__(self): 1/0\nraise E", "E", "(its text cannot be made)", 3, nil},
		{"import no_such_module", "ModuleNotFoundError", "No module named 'no_such_module'", 1, nil},
		{"import json\njson.loads('{')", "JSONDecodeError", "Expecting property name", 2, []string{"decoder.py"}},
		{"await 1", "TypeError", "can't be used in 'await' expression", 1, nil},
		{"exec('raise OSError(5)')", "OSError", "5", 1, nil},
		{"raise ExceptionGroup('g', [ValueError(1)])", "ExceptionGroup", "g (1 sub-exception)", 1, []string{"ValueError: 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := b.run(c.code)
			if r.Error == nil || r.ExitCode != 1 || r.Outcome != cove.Exited {
				t.Fatalf("%q gave %+v with the error %+v", c.code, r.Result, r.Error)
			}
			if r.Error.Name != c.name || !strings.Contains(r.Error.Value, c.value) || r.Error.Line != c.line {
				t.Errorf("%q raised %+v", c.code, r.Error)
			}
			for _, word := range c.has {
				if !strings.Contains(r.Error.Traceback, word) {
					t.Errorf("the traceback has no %q:\n%s", word, r.Error.Traceback)
				}
			}
			if strings.Contains(r.Error.Traceback, "<cove>") || strings.Contains(r.Error.Traceback, "python.py") {
				t.Errorf("the traceback has frames of ours:\n%s", r.Error.Traceback)
			}
		})
	}
}

// TestPythonLongErrors: a text that fits into no answer is cut.
func TestPythonLongErrors(t *testing.T) {
	b := python(t)
	r, _ := b.run("raise ValueError('ä' * 10**6)")
	if n := len(r.Error.Value); n > 64<<10 || n < 60<<10 || !utf8.ValidString(r.Error.Value) || !strings.Contains(r.Error.Value, "…") {
		t.Errorf("the text has %d bytes", n)
	}
	if n := len(r.Error.Traceback); n > 64<<10 || !strings.HasPrefix(r.Error.Traceback, "Traceback") {
		t.Errorf("the traceback has %d bytes", n)
	}
	if r, _ := b.run("def f(n):\n    if n: f(n - 1)\n    else: 1/0\nf(900)"); len(r.Error.Traceback) > 8<<10 || r.Error.Line != 3 {
		t.Errorf("a deep traceback is at line %d and has %d bytes", r.Error.Line, len(r.Error.Traceback))
	}
}

// TestPythonProcesses: the usual ways to use more than one work.
func TestPythonProcesses(t *testing.T) {
	b := python(t)
	b.prints("import multiprocessing as mp\ndef double(x): return 2 * x\nif __name__ == '__main__':\n    with mp.Pool(2) as p: print(p.map(double, [1, 2]))", "[2, 4]\n")
	b.prints("from concurrent.futures import ProcessPoolExecutor as E\nwith E(2) as e: print(list(e.map(double, [3])))", "[6]\n")
	b.prints("import subprocess as s\nprint(s.run(['cat'], input='in', capture_output=True, text=True).stdout, s.getoutput('ls /proc/self/fd | wc -l'))", "in 4\n")
	b.prints("import os, sys\nr, w = os.pipe()\nif os.fork() == 0: os.write(w, b'child'); os._exit(0)\nprint(os.read(r, 9), os.waitstatus_to_exitcode(os.wait()[1]))", "b'child' 0\n")
	b.prints("print(os.waitstatus_to_exitcode(os.system('exit 5')), os.popen('echo pipe').read().strip())", "5 pipe\n")
}

func TestPythonAwaits(t *testing.T) {
	b := python(t)
	b.prints("import asyncio\nq = asyncio.Queue()\nasync def put():\n    await asyncio.sleep(0)\n    await q.put(7)\nt = asyncio.ensure_future(put())\nawait asyncio.sleep(0)", "")
	if got := b.value("await q.get()"); got["text/plain"] != "7" {
		t.Errorf("awaited %v", got)
	}
	b.prints("async with asyncio.timeout(5):\n    print([x async for x in (i async for i in aiter_())] if False else 'in')", "in\n")
	b.prints("print(asyncio.run(asyncio.sleep(0, 'own loop')))", "own loop\n")
	r, _ := b.run("async def bad():\n    raise ValueError('async')\nawait bad()")
	if r.Error == nil || r.Error.Name != "ValueError" || r.Error.Line != 2 || strings.Contains(r.Error.Traceback, "<cove>") {
		t.Errorf("raised %+v", r.Error)
	}
	r, _ = b.within("await asyncio.sleep(100)", cove.Limits{Wall: 300 * time.Millisecond})
	if r.Outcome != cove.TimedOut || !b.k.Alive() {
		t.Errorf("a long wait ended with %+v", r.Result)
	}
	b.prints("print(await asyncio.sleep(0, 'again'))", "again\n")
}

func TestPythonStreams(t *testing.T) {
	b := python(t)
	// The order of the two is known where Python itself writes.
	b.prints("import sys\nfor i in range(50):\n    print('out', i)\n    print('err', i, file=sys.stderr)", func() string {
		var s strings.Builder
		for i := range 50 {
			n := string(rune('0'+i/10)) + string(rune('0'+i%10))
			n = strings.TrimPrefix(n, "0")
			s.WriteString("out " + n + "\nerr " + n + "\n")
		}
		return s.String()
	}())
	b.prints("import subprocess, os\nprint('before', end=' ')\nsubprocess.run(['echo', 'child'])\nprint('after')", "before child\nafter\n")
	b.prints("import ctypes\nlibc = ctypes.CDLL(None)\nprint('python')\nlibc.puts(b'extension'); n = libc.fflush(None)", "python\nextension\n")
	b.prints("n = os.write(1, b'raw '); print('text')", "raw text\n")
	b.prints("n = sys.stdout.buffer.write(b'bytes\\n')", "bytes\n")
	b.prints("import io, contextlib\nwith contextlib.redirect_stdout(io.StringIO()) as s:\n    print('held')\nprint(len(s.getvalue()))", "5\n")
	b.prints("print(sys.stdout.fileno(), sys.stderr.fileno(), sys.stdout.encoding, sys.stdout.isatty(), repr(sys.stdin.read()))", "1 2 utf-8 False ''\n")
	b.prints("exit()", "")
	b.prints("print(repr(sys.stdin.read()), os.dup(0) > 2)", "'' True\n")
	if r, h := b.run("os.system('echo child >&2')\nraise ValueError"); r.Error == nil || h.err.String() != "child\n" {
		t.Errorf("stderr is %q", h.err.String())
	}
	// What comes between two runs is the next one's.
	b.run("import threading, time\ngo = threading.Event()\nthreading.Thread(target=lambda: (go.wait(), print('late'))).start()")
	b.prints("th = threading.Timer(0, lambda: None)\ngo.set(); [t.join() for t in threading.enumerate() if t is not threading.current_thread()] and None", "late\n")
}

// TestPythonOrderWithOthers: what processes write has its place among what is printed.
func TestPythonOrderWithOthers(t *testing.T) {
	python(t).prints(`import os, subprocess, sys
for _ in range(20):
    print("a")
    print("b", file=sys.stderr)
    subprocess.run(["echo", "c"])
    print("d", file=sys.stderr)
    os.system("echo e >&2")
    print("f")
    subprocess.run("echo g >&2", shell=True)
    if os.fork() == 0:
        print("h")
        os._exit(0)
    os.wait()
    print("i", file=sys.stderr)`, strings.Repeat("a\nb\nc\nd\ne\nf\ng\nh\ni\n", 20))
}

func TestPythonFigures(t *testing.T) {
	b := python(t)
	if r, _ := b.run("import matplotlib, pandas"); r.Error != nil {
		t.Skipf("not installed: %s", r.Error.Value)
	}
	r, h := b.run("import matplotlib.pyplot as plt\nplt.plot([1, 2], [3, 5])\nplt.show()\nprint('shown')\nplt.figure(); plt.bar([1], [2]); None")
	if r.Error != nil || len(r.Results) != 2 || h.all.String() != "shown\n" {
		t.Fatalf("%d values, the error %+v, output %q", len(r.Results), r.Error, h.all.String())
	}
	for _, v := range r.Results {
		if n := colours(t, v["image/png"]); n < 2 {
			t.Errorf("the figure has %d colours", n)
		}
	}
	got := b.value("fig, ax = plt.subplots(); ax.plot([1, 2]); fig")
	if n := colours(t, got["image/png"]); n < 2 {
		t.Errorf("the figure has %d colours", n)
	}
	got = b.value("import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', None], 'c': [1.5, float('nan')]})")
	if !strings.Contains(got["text/html"], "<table") {
		t.Errorf("the frame is %v", got)
	}
	var frame struct {
		Columns   []any
		Rows      [][]any
		RowCount  int `json:"row_count"`
		Truncated bool
	}
	if err := json.Unmarshal([]byte(got["application/json"]), &frame); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([][]any{{1.0, "x", 1.5}, {2.0, nil, nil}}, frame.Rows); d != "" || frame.RowCount != 2 || frame.Truncated || len(frame.Columns) != 3 {
		t.Errorf("%s %+v", d, frame)
	}
	got = b.value("pd.Series(range(5000), name='s')")
	if err := json.Unmarshal([]byte(got["application/json"]), &frame); err != nil || len(frame.Rows) != 1000 || frame.RowCount != 5000 || !frame.Truncated {
		t.Errorf("a long series is %d rows of %d, %v", len(frame.Rows), frame.RowCount, err)
	}
	got = b.value("pd.DataFrame([[1, 2]], columns=['a', 'a'])")
	if err := json.Unmarshal([]byte(got["application/json"]), &frame); err != nil || len(frame.Rows[0]) != 2 {
		t.Errorf("two columns of one name are %q, %v", got["application/json"], err)
	}
	sales := "pd.DataFrame({'city': ['Oslo', 'Rome', 'Oslo'], 'year': [1, 1, 2], 'sales': [1, 2, 3]})"
	for code, want := range map[string]string{
		sales + ".groupby('city')['sales'].sum()":                   `{"columns": ["city", "sales"], "rows": [["Oslo", 4], ["Rome", 2]]`,
		sales + ".groupby(['city', 'year']).sum()":                  `{"columns": ["city", "year", "sales"], "rows": [["Oslo", 1, 1], ["Oslo", 2, 3], ["Rome", 1, 2]]`,
		"pd.Series([True, False, True]).value_counts()":             `"rows": [[true, 2], [false, 1]]`,
		"pd.Series([7, 8, 8], name='n').value_counts()":             `"rows": [[8, 2], [7, 1]]`,
		"pd.DataFrame({'a': [1, 2]}, index=['x', 'y'])":             `{"columns": ["index", "a"], "rows": [["x", 1], ["y", 2]]`,
		"pd.Series([1], index=pd.MultiIndex.from_tuples([(2, 3)]))": `{"columns": ["level_0", "level_1", 0], "rows": [[2, 3, 1]]`,
		"pd.DataFrame()": `{"columns": [], "rows": [], "row_count": 0`,
	} {
		if got := b.value(code)["application/json"]; !strings.Contains(got, want) {
			t.Errorf("%s is %s, want %s", code, got, want)
		}
	}
}

// colours counts those of a picture.
func colours(t *testing.T, form string) int {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(form)
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[color.Color]bool{}
	for p := (image.Point{}); p.Y < img.Bounds().Dy(); p.Y++ {
		for p.X = 0; p.X < img.Bounds().Dx(); p.X++ {
			seen[img.At(p.X, p.Y)] = true
		}
	}
	return len(seen)
}

func BenchmarkPython(b *testing.B) {
	k, err := kernel.New().Open(b.Context(), newHost(b), cove.KernelSpec{Language: "python"})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := k.Run(b.Context(), cove.KernelRun{Code: "1+1"}); err != nil {
			b.Fatal(err)
		}
	}
	_ = k.Close(b.Context())
}
