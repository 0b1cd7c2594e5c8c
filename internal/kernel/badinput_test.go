package kernel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

// bad is code that tries to break its interpreter, and what is to become of it.
type bad struct {
	name, code string
	died       bool   // the interpreter ends
	later      bool   // it ends when the code is done
	raised     string // the name of the error
	says       string // is in its text
	exit       int    // its exit code
	out        string // what it writes to stdout, if anything
	limits     cove.Limits
	outcome    cove.Outcome // "" means exited
}

func badPython() []bad {
	return []bad{
		{name: "syntax error", code: "def f(:", raised: "SyntaxError", says: "invalid syntax", exit: 1},
		{name: "NUL", code: "x = 1\x00", raised: "ValueError", says: "null bytes", exit: 1},
		{name: "not UTF-8", code: "x = '\xff'", raised: "UnicodeDecodeError", says: "invalid start byte", exit: 1},
		{name: "kill -9", code: "import os; os.kill(os.getpid(), 9)", died: true, raised: "KernelDied", says: "signal KILL", exit: 137, outcome: cove.Signaled},
		{name: "abort", code: "import os; os.abort()", died: true, raised: "KernelDied", says: "crashed (signal ABRT)", exit: 134, outcome: cove.Signaled},
		{name: "segmentation fault", code: "import ctypes; ctypes.string_at(0)", died: true, raised: "KernelDied", says: "crashed (signal SEGV)", exit: 139, outcome: cove.Signaled},
		{name: "_exit", code: "import os; print('bye', flush=True); os._exit(7)", died: true, raised: "KernelDied", says: "exit code 7", exit: 7, out: "bye\n"},
		{name: "_exit 0", code: "import os; os._exit(0)", died: true, raised: "KernelDied", says: "its variables are gone", exit: 0},
		{name: "exec", code: "import os; os.execvp('sh', ['sh', '-c', 'echo gone; exit 5'])", died: true, raised: "KernelDied", says: "exit code 5", exit: 5, out: "gone\n"},
		{name: "sys.exit", code: "import sys; print('a'); sys.exit(3)", raised: "SystemExit", says: "3", exit: 3, out: "a\n"},
		{name: "sys.exit 0", code: "import sys; sys.exit(0)"},
		{name: "exit", code: "exit()"},
		{name: "no stdin", code: "import sys, os; sys.stdin.close(); os.close(0); del sys.stdin"},
		{name: "sys.exit text", code: "import sys; sys.exit('no good')", raised: "SystemExit", says: "no good", exit: 1},
		{name: "recursion", code: "def f(): f()\nf()", raised: "RecursionError", says: "maximum recursion depth", exit: 1},
		{name: "recursion without a limit", code: "import sys; sys.setrecursionlimit(10**9)\nclass A:\n    def __repr__(self): return repr([self])\nstr(A())", died: true, raised: "KernelDied", says: "crashed (signal SEGV)", exit: 139, outcome: cove.Signaled},
		{name: "binary output", code: "import os; n = os.write(1, bytes(range(256)))", out: allBytes()},
		{name: "half a character", code: "import sys; n = sys.stdout.buffer.write('ä'.encode()[:1])", out: "\xc3"},
		{name: "surrogates", code: "print('a\\udcffb')", out: "a\xffb\n"},
		{name: "closed stdout", code: "import os; os.close(1); os.close(2)"},
		{name: "print to a closed stdout", code: "import os; os.close(1)\nprint('x')", raised: "OSError", says: "Bad file descriptor", exit: 1},
		{name: "closed sys.stdout", code: "import sys; sys.stdout.close(); sys.stderr.close()"},
		{name: "no sys.stdout", code: "import sys; del sys.stdout; sys.stderr = None"},
		{name: "replaced stdout", code: "import os; f = os.open('/dev/null', os.O_WRONLY); os.dup2(f, 1); print('lost')"},
		{name: "swapped streams", code: "import os; t = os.dup(1); os.dup2(2, 1); os.dup2(t, 2); print('there')", out: ""},
		{name: "stdout that does not block", code: "import os\nos.set_blocking(1, False)\nprint('x' * 10**6)", out: strings.Repeat("x", 1_000_000) + "\n"},
		{name: "fork and exit", code: "import os, sys\nif os.fork() == 0: print('child'); sys.exit(4)\nprint(os.waitstatus_to_exitcode(os.wait()[1]))", out: "child\n4\n"},
		{name: "fork and return", code: "import os\npid = os.fork()\nif pid: print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\nelse: print('child')", out: "child\n0\n"},
		{name: "fork and raise", code: "import os\npid = os.fork()\nif not pid: 1/0\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))", out: "1\n"},
		{name: "fork and leave the child", code: "import os, time\nif os.fork() == 0: time.sleep(1000)"},
		{name: "threads that never end", code: "import threading, time\nfor _ in range(20): threading.Thread(target=lambda: [time.sleep(.05) for _ in iter(int, 1)]).start()\nprint('started')", out: "started\n"},
		{name: "write to the driver's descriptors", code: "import os\nfor fd in range(500, 600):\n    try: os.write(fd, b'garbage\\n')\n    except OSError: pass"},
		{name: "write requests", code: "import os\nwith open('/proc/self/fd/512', 'wb', 0) as f: f.write(b'X 9 -1\\nZ Z Z\\n')", later: true},
		{name: "write a request", code: "import os\nwith open('/proc/self/fd/512', 'wb', 0) as f: f.write(b'X 9 1\\n1')", later: true},
		{name: "close the driver's descriptors", code: "import os; os.closerange(3, 4096); print('closed')", died: true, raised: "KernelDied", says: "closed the descriptors", exit: 1, out: "closed\n"},
		{name: "close all descriptors", code: "import os; os.closerange(0, 4096)", died: true, raised: "KernelDied", exit: 1},
		{name: "forged end", code: "import sys, __main__\nm = [o for o in __import__('gc').get_objects() if isinstance(o, dict) and o.get('PLAIN')]\nS = m[0]['S']\nimport os\nos.write(1, S.marker + b'D 1 99999\\nxx' + S.marker + b'Q 1 0\\n' + S.marker); print('!')"},
		{name: "no memory", code: "x = bytearray(1 << 60)", raised: "MemoryError", exit: 1},
		{name: "broken builtins", code: "import builtins, os, sys, io\nbuiltins.len = builtins.repr = builtins.str = None\nsys.modules.clear()\nos.write = None", died: true, raised: "KernelDied"},
		{name: "no modules", code: "import sys; sys.modules.clear()"},
		{name: "raises in repr", code: "class A:\n    def __repr__(self): raise SystemExit(9)\nA()", raised: "SystemExit", says: "9", exit: 9},
		{name: "endless repr", code: "class A:\n    def __repr__(self):\n        while True: pass\nA()", raised: "TimeoutError", says: "the variables are kept", exit: -1, outcome: cove.TimedOut, limits: cove.Limits{Wall: 200 * time.Millisecond}},
		{name: "exception without text", code: "raise type('', (BaseException,), {})", raised: "", exit: 1},
		{name: "interrupts itself", code: "import os, signal; os.kill(os.getpid(), signal.SIGINT)\nwhile True: pass", raised: "KeyboardInterrupt", exit: 130},
		{name: "stops listening", code: "import signal; signal.signal(signal.SIGINT, lambda *_: None)"},
		{name: "modules named as ours", code: "for m in ('ast', 'json', 'linecache', 'traceback', 'tokenize', 're', 'base64', 'asyncio'):\n    n = open(m + '.py', 'w').write('raise SystemExit(9)')\nimport time\ntime.nope", raised: "AttributeError", says: "nope", exit: 1},
		{name: "a module of ours is its own", code: "import sys; sys.modules['traceback'] = sys.modules['ast'] = sys.modules['json'] = 1\nnope", raised: "NameError", says: "nope", exit: 1},
		{name: "long line", code: "x = '" + strings.Repeat("a", 15_000_000) + "'\nprint(len(x))", out: "15000000\n"},
	}
}

func allBytes() string {
	var b [256]byte
	for i := range b {
		b[i] = byte(i)
	}
	return string(b[:])
}

func TestPythonBadInput(t *testing.T) {
	for _, c := range badPython() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := python(t)
			b.check(c)
			if c.later {
				r, _ := b.run("1")
				if r.Error == nil || r.Error.Name != "KernelDied" || b.k.Alive() {
					t.Errorf("the next run is %+v with the error %+v", r, r.Error)
				}
				return
			}
			if b.k.Alive() == c.died {
				t.Fatalf("the interpreter is alive: %v", b.k.Alive())
			}
			if !c.died {
				b.prints("import os; v = 6 * 7\nprint(v, os.read(0, 9)); n = os.write(2, b'')", "42 b''\n")
			}
		})
	}
}

// check runs bad code and compares what becomes of it.
func (b *bench) check(c bad) {
	b.t.Helper()
	if c.limits.Wall == 0 {
		c.limits.Wall = soon
	}
	if c.outcome == "" {
		c.outcome = cove.Exited
	}
	h := &heard{}
	r, err := b.k.Run(b.t.Context(), cove.KernelRun{Code: c.code, Limits: c.limits, OnOutput: h.hear})
	if err != nil {
		b.t.Fatal(err)
	}
	if r.Outcome != c.outcome || (c.exit != r.ExitCode && c.raised+c.says != "KernelDied") {
		b.t.Errorf("it ended with %+v and the error %+v", r.Result, r.Error)
	}
	if c.out != "" && h.out.String() != c.out {
		b.t.Errorf("it wrote %.200q and %.200q", h.out.String(), h.err.String())
	}
	switch {
	case c.raised == "" && c.exit == 0 && r.Error != nil:
		b.t.Errorf("it raised %+v", r.Error)
	case c.raised != "" && (r.Error == nil || r.Error.Name != c.raised || !strings.Contains(r.Error.Value, c.says)):
		b.t.Errorf("it raised %+v, want %s: %s", r.Error, c.raised, c.says)
	}
}

// TestPythonFloods: what is written is bounded by nobody here, and kept by nobody.
func TestPythonFloods(t *testing.T) {
	b := python(t)
	h := &heard{keep: 1}
	const most = 100 << 20
	r, err := b.k.Run(t.Context(), cove.KernelRun{Code: fmt.Sprintf("import os\nb = b'x' * (1 << 20)\nfor _ in range(%d): n = os.write(1, b)", most>>20), Limits: cove.Limits{Wall: time.Minute}, OnOutput: h.hear})
	if err != nil || r.Error != nil || h.bytes != most {
		t.Fatalf("100 MB are %d bytes with %+v, %v", h.bytes, r, err)
	}
	b.prints("print('fine')", "fine\n")
}
