package kernel_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

func badNode() []bad {
	return []bad{
		{name: "syntax error", code: "function (", raised: "SyntaxError", exit: 1},
		{name: "NUL", code: "1 \x00", raised: "SyntaxError", exit: 1},
		{name: "kill -9", code: "process.kill(process.pid, 'SIGKILL'); for (;;) {}", died: true, raised: "KernelDied", says: "signal KILL", exit: 137, outcome: cove.Signaled},
		{name: "abort", code: "process.abort()", died: true, raised: "KernelDied", says: "crashed (signal ABRT)", exit: 134, outcome: cove.Signaled},
		{name: "reallyExit", code: "console.log('bye'); process.reallyExit(7)", died: true, raised: "KernelDied", says: "exit code 7", exit: 7, out: "bye\n"},
		{name: "recursion", code: "function f() { f() }; f()", raised: "RangeError", says: "call stack", exit: 1},
		{name: "recursion when shown", code: "({[Symbol.for('nodejs.util.inspect.custom')]: function f() { return f() + 1 }})", raised: "Error", says: "call stack", exit: 1},
		{name: "an error when shown", code: "({[Symbol.for('nodejs.util.inspect.custom')]() { throw new Error('unseen') }})", raised: "Error", says: "unseen", exit: 1},
		{name: "binary output", code: "process.stdout.write(Buffer.from(Array.from({length: 256}, (_, i) => i))); undefined", out: allBytes()},
		{name: "half a character", code: "process.stdout.write(Buffer.from('ä').subarray(0, 1)); undefined", out: "\xc3"},
		{name: "lone surrogate", code: "console.log('a\\ud800b')", out: "a\ufffdb\n"},
		{name: "closed stdout", code: "fs.closeSync(1); fs.closeSync(2); console.log('heard')", out: "heard\n"},
		{name: "ended stdout", code: "process.stdout.end(); process.stdout.destroy(); process.stderr.destroy(); undefined"},
		{name: "replaced stdout", code: "fs.closeSync(1); fs.openSync('file', 'w'); undefined"},
		{name: "no stdout", code: "Object.defineProperty(process, 'stdout', {value: null}); undefined", later: true},
		{name: "stdout that does not block", code: "const s = new (require('net').Socket)({fd: 1, readable: false, writable: true}); console.log('x'.repeat(1e6))", out: strings.Repeat("x", 1_000_000) + "\n"},
		{name: "stdout that is read", code: "new (require('net').Socket)({fd: 1}); await new Promise((r) => setTimeout(r, 50))", raised: "Error", exit: 1},
		{name: "a failure in a tick", code: "process.nextTick(() => { throw new TypeError('ticked') }); 1", raised: "TypeError", says: "ticked", exit: 1},
		{name: "an endless tick", code: "process.nextTick(() => { for (;;) {} }); 1", raised: "TimeoutError", says: "the variables are kept", exit: -1, outcome: cove.TimedOut, limits: cove.Limits{Wall: 300 * time.Millisecond}},
		{name: "an endless scope", code: "new (require('async_hooks').AsyncLocalStorage)().run(1, () => { new (require('async_hooks').AsyncResource)('x').runInAsyncScope(() => { for (;;) {} }) })", raised: "TimeoutError", says: "the variables are kept", exit: -1, outcome: cove.TimedOut, limits: cove.Limits{Wall: 300 * time.Millisecond}},
		{name: "endless after an import", code: "import path from 'path'; for (;;) {}", raised: "TimeoutError", says: "the variables are kept", exit: -1, outcome: cove.TimedOut, limits: cove.Limits{Wall: 300 * time.Millisecond}},
		{name: "write to the driver's descriptors", code: "fs.writeSync(4, 'garbage\\n'); undefined", out: "garbage\n"},
		{name: "close the driver's output", code: "fs.closeSync(4); undefined", died: true, raised: "KernelDied", says: "descriptors of the interpreter", exit: 70},
		{name: "close the driver's errors", code: "fs.closeSync(5); undefined", died: true, raised: "KernelDied", says: "descriptors of the interpreter", exit: 70},
		{name: "replace the driver's output", code: "fs.closeSync(4); fs.openSync('file', 'w'); undefined", raised: "TimeoutError", died: true, says: "gone", exit: -1, outcome: cove.TimedOut, limits: cove.Limits{Wall: 300 * time.Millisecond}},
		{name: "forks of the driver", code: "const w = require('child_process').fork('/dev/null'); await new Promise((r) => w.on('exit', r))", out: ""},
		{name: "a worker that never ends", code: "new (require('worker_threads').Worker)('for (;;) {}', {eval: true}).unref(); console.log('on')", out: "on\n"},
		{name: "timers that never end", code: "setInterval(() => {}, 1); console.log('on')", out: "on\n"},
		{name: "broken builtins", code: "Array.prototype.push = Array.prototype.flatMap = JSON.stringify = Object.keys = null; globalThis.Buffer = globalThis.Promise = 0; undefined", died: true, raised: "KernelDied", exit: 70},
		{name: "own names", code: "const Buffer = 1, process = 2, Object = 3, JSON = 4, cove = 5, require = 6; cove", out: ""},
		{name: "frozen world", code: "Object.freeze(Object.prototype); Object.freeze(Array.prototype); Object.freeze(Function.prototype); undefined"},
		{name: "the door", code: "globalThis[Symbol.for('cove')](1); undefined"},
		{name: "a second inspector", code: "const s = new (require('inspector').Session)(); s.connect(); s.post('Runtime.enable'); s.disconnect(); undefined"},
		{name: "endless getter", code: "({get x() { for (;;) {} }}).x", raised: "TimeoutError", says: "the variables are kept", exit: -1, outcome: cove.TimedOut, limits: cove.Limits{Wall: 300 * time.Millisecond}},
		{name: "an endless promise", code: "new Promise(() => {})", raised: "TimeoutError", says: "the variables are kept", exit: -1, outcome: cove.TimedOut, limits: cove.Limits{Wall: 300 * time.Millisecond}},
		{name: "throws undefined", code: "throw undefined", raised: "Uncaught", says: "undefined", exit: 1},
		{name: "throws null", code: "throw null", raised: "Uncaught", says: "null", exit: 1},
		{name: "an error without a text", code: "throw new Proxy(new Error('x'), {get() { throw 1 }})", raised: "Error", exit: 1},
		{name: "a large error", code: "throw new Error('x'.repeat(1e7))", raised: "Error", exit: 1},
		{name: "long line", code: "const x = '" + strings.Repeat("a", 15_000_000) + "'; console.log(x.length)", out: "15000000\n"},
	}
}

func TestNodeBadInput(t *testing.T) {
	nodes(t, func(t *testing.T, js nodejs) {
		for _, c := range badNode() {
			t.Run(c.name, func(t *testing.T) {
				b := js.open(t)
				b.check(c)
				if c.later {
					if r, _ := b.run("1"); r.Error != nil && b.k.Alive() {
						_, _ = b.run("1") // an error of its own, or a fresh interpreter: never silence
					}
					return
				}
				b.survives(c, "console.log(6 * 7)")
			})
		}
	})
}

// survives fails the test where an interpreter does not live on as it should.
func (b *bench) survives(c bad, hello string) {
	b.t.Helper()
	if b.k.Alive() == c.died {
		b.t.Fatalf("the interpreter is alive: %v", b.k.Alive())
	}
	if r, h := b.run(hello); !c.died && (r.Error != nil || h.out.String() != "42\n") {
		b.t.Errorf("the next run wrote %q with the error %+v", h.all.String(), r.Error)
	}
}

func badBash() []bad {
	return []bad{
		{name: "syntax error", code: "if", raised: "SyntaxError", exit: 2},
		{name: "not UTF-8", code: "echo '\xff\xfe'", out: "\xff\xfe\n"},
		{name: "kill -9", code: "kill -9 $$", died: true, raised: "KernelDied", says: "signal KILL", exit: 137, outcome: cove.Signaled},
		{name: "exec", code: "exec sh -c 'echo gone; exit 5'", died: true, raised: "KernelDied", says: "exit code 5", exit: 5, out: "gone\n"},
		{name: "recursion", code: "f() { f; }; FUNCNEST=1000; f", exit: 1},
		{name: "endless recursion", code: "ulimit -s 1024; f() { f; }; f", died: true, raised: "KernelDied", says: "crashed (signal SEGV)", exit: 139, outcome: cove.Signaled},
		{name: "binary output", code: "printf '%b' \"$(printf '\\\\x%02x' {0..255})\"", out: allBytes()},
		{name: "half a character", code: "printf '\\xc3'", out: "\xc3"},
		{name: "closed streams", code: "exec 0<&- 1>&- 2>&-"},
		{name: "replaced stdout", code: "exec >/dev/null; echo lost"},
		{name: "streams of its own", code: "exec 10>&1; echo ten >&10; exec 200>lock; flock 200", out: "ten\n"},
		{name: "close the driver's descriptors", code: "for i in {3..255}; do eval \"exec $i>&-\"; done", died: true, raised: "KernelDied", exit: 70},
		{name: "close the driver's input", code: "exec 250<&-", died: false, later: true},
		{name: "write to the driver's descriptors", code: "echo garbage >&251", out: "garbage\n"},
		{name: "fork and exit", code: "(exit 3); echo $?; (echo child; kill -9 $BASHPID); echo $?", out: "3\nchild\n137\n"},
		{name: "fork and leave the child", code: "sleep 1000 &"},
		{name: "own functions", code: "read() { echo mine; }; printf() { :; }; eval() { :; }; exec() { :; }; echo() { builtin echo \"$@\"; }"},
		{name: "own names", code: "readonly x=1 n=2 text=3 kind=4; LINENO=100; IFS=x; set -f; shopt -s nullglob"},
		{name: "all options", code: "set -aefukhBCET; shopt -s expand_aliases xpg_echo; set +e; :", out: ""},
		{name: "a debug trap", code: "trap : DEBUG ERR RETURN"},
		{name: "ignored signals", code: "trap '' INT TERM HUP"},
		{name: "no directory", code: "mkdir gone; cd gone; rmdir $PWD; exit 3", exit: 3},
		{name: "no programs", code: "PATH=/nowhere; ls; exit 4", exit: 4},
		{name: "no environment", code: "for v in ${!P*} ${!H*} LC_ALL LANG; do unset $v; done 2>/dev/null; exit 5", exit: 5},
		{name: "a large state", code: "big=$(head -c 300000 /dev/zero | tr '\\0' y); exit 6", exit: 6},
		{name: "long line", code: "x='" + strings.Repeat("a", 3_000_000) + "'; echo ${#x}", out: "3000000\n"},
	}
}

func TestBashBadInput(t *testing.T) {
	for _, c := range badBash() {
		t.Run(c.name, func(t *testing.T) {
			b := bash(t)
			b.check(c)
			if c.later {
				if r, _ := b.run("echo"); r.Error == nil || r.Error.Name != "KernelDied" {
					t.Errorf("the next run is %+v with the error %+v", r, r.Error)
				}
				return
			}
			b.survives(c, "builtin echo $((6 * 7))")
		})
	}
}

// TestWorkspaces: what becomes of the directory hurts nobody.
func TestWorkspaces(t *testing.T) {
	for language, code := range map[string][3]string{
		"node": {"fs.rmSync(process.cwd(), {recursive: true}); undefined", "console.log(6 * 7); process.exit(3)", "console.log(6 * 7); const os2 = require('os'); import('os').then(() => undefined)"},
		"bash": {"rm -rf \"$PWD\"", "echo 42; exit 3", "echo 42"},
	} {
		b := open(t, cove.KernelSpec{Language: language})
		b.ends(code[0], 0)
		if r, h := b.run(code[1]); r.ExitCode != 3 || h.out.String() != "42\n" {
			t.Errorf("%s without a directory ended with %d and wrote %q", language, r.ExitCode, h.all.String())
		}
		if r, h := b.run(code[2]); r.Error != nil || h.out.String() != "42\n" {
			t.Errorf("%s without a directory wrote %q: %+v", language, h.all.String(), r.Error)
		}
	}
}

// TestFloods: much output is passed on whole, and stops at a limit.
func TestFloods(t *testing.T) {
	const size = 100_000_000
	for language, code := range map[string][2]string{
		"node": {"const part = 'x'.repeat(1e6); for (let i = 0; i < 100; i++) process.stdout.write(part); undefined", "for (;;) console.log('y')"},
		"bash": {"head -c 100000000 /dev/zero", "while :; do echo y; done"},
	} {
		b := open(t, cove.KernelSpec{Language: language})
		h := &heard{keep: 1}
		r, err := b.k.Run(t.Context(), cove.KernelRun{Code: code[0], Limits: cove.Limits{Wall: time.Minute}, OnOutput: h.hear})
		if err != nil || r.Error != nil || h.bytes != size {
			t.Errorf("%s: %v, %+v and %d bytes", language, err, r, h.bytes)
		}
		r, h = b.within(code[1], cove.Limits{Wall: time.Minute, Output: 1000})
		if r.Outcome != cove.OutputLimit || h.bytes != 1000 || !strings.Contains(r.Error.Value, "kept") {
			t.Errorf("%s is %s after %d bytes: %+v", language, r.Outcome, h.bytes, r.Error)
		}
		if r, _ := b.run(""); r.Error != nil {
			t.Errorf("%s is not as before: %+v", language, r.Error)
		}
	}
}
