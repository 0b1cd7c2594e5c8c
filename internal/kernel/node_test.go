package kernel_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/kernel"
)

// shows runs code whose value must have a text.
func (b *bench) shows(code, want string) {
	b.t.Helper()
	if got := b.value(code)["text/plain"]; got != want {
		b.t.Errorf("%.80q has the value %q, want %q", code, got, want)
	}
}

// raises runs code that must fail, and returns how.
func (b *bench) raises(code string) *cove.CodeError {
	b.t.Helper()
	r, h := b.run(code)
	if r.Error == nil || r.ExitCode == 0 {
		b.t.Fatalf("%.80q ended with %d and wrote %q", code, r.ExitCode, h.all.String())
	}
	return r.Error
}

func TestNodeRemembers(t *testing.T) {
	nodes(t, func(t *testing.T, js nodejs) {
		b := js.open(t)
		b.prints("const x = 42; let y = x; function f() { return x + 1 } class C { v() { return 7 } }", "")
		b.prints("console.log(x, f(), new C().v())", "42 43 7\n")
		b.prints("const x = 1; let y = 2; class C {}", "")
		b.prints("console.log(x, y, f())", "1 2 2\n")
		b.prints("fs.mkdirSync('d'); process.chdir('d'); process.env.WORD = 'kept'", "")
		b.shows("require('child_process').execSync('basename $PWD; echo $WORD').toString()", `'d\nkept\n'`)
		b.prints("for (const i of [1]) { console.log(i) }; var z = await Promise.resolve(5)", "1\n")
		b.shows("z", "5")
		b.prints("", "")
		b.prints("// nothing", "")
	})
}

func TestNodeValues(t *testing.T) {
	nodes(t, func(t *testing.T, js nodejs) {
		b := js.open(t)
		for code, want := range map[string]string{
			"1 + 1":                    "2",
			"'a'":                      "'a'",
			"null":                     "null",
			"-0":                       "-0",
			"12n":                      "12n",
			"NaN":                      "NaN",
			"Symbol('q')":              "Symbol(q)",
			"new Map([[1, {a: 2}]])":   "Map(1) { 1 => { a: 2 } }",
			"await 5":                  "5",
			"Promise.resolve('later')": "'later'",
			"async function g() { await 0; return 1 }\ng()":     "1",
			"class P { constructor() { this.a = 1 } }; new P()": "P { a: 1 }",
			"import.meta.dirname === process.cwd()":             "true",
		} {
			if got := b.value(code); got["text/plain"] != want || len(got) != 1 {
				t.Errorf("%q has the value %v, want %s", code, got, want)
			}
		}
		for code, want := range map[string]cove.Rich{
			"({a: 1})":       {"text/plain": "{ a: 1 }", "application/json": `{"a":1}`},
			"{b: [1]}":       {"text/plain": "{ b: [ 1 ] }", "application/json": `{"b":[1]}`},
			"[1, 'x', null]": {"text/plain": "[ 1, 'x', null ]", "application/json": `[1,"x",null]`},
		} {
			if diff := cmp.Diff(want, b.value(code)); diff != "" {
				t.Errorf("%q: %s", code, diff)
			}
		}
		for _, code := range []string{"undefined", "const q = 1", "function h() {}", "console.error()", "{}; undefined"} {
			if r, _ := b.run(code); len(r.Results) > 0 || r.Error != nil {
				t.Errorf("%q has the values %v and the error %+v", code, r.Results, r.Error)
			}
		}
		if got := b.value("const big = Array.from({length: 1e6}, (_, i) => i); big"); got["application/json"] != "" || len(got["text/plain"]) > 5000 {
			t.Errorf("a large value has forms of %d and %d bytes", len(got["text/plain"]), len(got["application/json"]))
		}
		b.shows("const loop = {}; loop.self = loop; loop", "<ref *1> { self: [Circular *1] }")
	})
}

func TestNodeImports(t *testing.T) {
	nodes(t, func(t *testing.T, js nodejs) {
		b := js.open(t)
		b.prints(`fs.writeFileSync('m.mjs', 'export const v = 3; export default () => 9')
			fs.writeFileSync('c.js', 'exports.q = 1'); fs.writeFileSync('data.json', '{"k": 1}')
			fs.mkdirSync('node_modules/pkg', {recursive: true})
			fs.writeFileSync('node_modules/pkg/package.json', '{"name": "pkg", "type": "module", "exports": {"import": "./i.js"}}')
			fs.writeFileSync('node_modules/pkg/i.js', 'export const name = "pkg"')
			fs.mkdirSync('below'); fs.writeFileSync('below/m.mjs', 'export const v = 4')`, "")
		for code, want := range map[string]string{
			"import fs2, {readFileSync as r} from 'fs'; fs2.readFileSync === r":                  "true",
			"import * as p from 'node:path'; p.sep":                                              "'/'",
			"import d, {v} from './m.mjs'\nd() + v":                                              "12",
			"import {name} from 'pkg'; name":                                                     "'pkg'",
			"import './m.mjs'; 5":                                                                "5",
			"import q, * as all from './m.mjs'; q() + all.v":                                     "12",
			"import {\n  join, // a comment\n  resolve as res,\n} from \"path\"; join('a', 'b')": "'a/b'",
			"(await import('./m.mjs')).v":                                                        "3",
			"const load = async () => (await import('node:os')).EOL; load()":                     `'\n'`,
			"require('./c').q + require('./data.json').k":                                        "2",
			"import j from './data.json' with {type: 'json'}; j.k":                               "1",
			"`import x from ${`'y' ${'import('}`}`":                                              `"import x from 'y' import("`,
			"/import('x')/.source + \"import a from 'b'\"":                                       `"import('x')import a from 'b'"`,
			"({import: 1}).import":                                                               "1",
			"6 / 2 / 1 // import x from 'nowhere'":                                               "3",
		} {
			if got := b.value(code)["text/plain"]; got != want {
				t.Errorf("%q has the value %v, want %s", code, got, want)
			}
		}
		b.prints("process.chdir('below')", "")
		b.shows("import {v} from './m.mjs'; v", "4")
		b.shows("(await import('../m.mjs')).v", "3")
		for code, want := range map[string]cove.CodeError{
			"1\nimport {nope} from '../m.mjs'": {Name: "SyntaxError", Value: "The requested module '../m.mjs' does not provide an export named 'nope'"},
			"require('./nope')":                {Name: "Error", Line: 1},
			"import 'nopkg'":                   {Name: "Error"},
			"import x from":                    {Name: "SyntaxError", Line: 1},
		} {
			got := b.raises(code)
			if got.Name != want.Name || want.Value != "" && got.Value != want.Value || want.Line > 0 && got.Line != want.Line || strings.Contains(got.Traceback, "cove:driver") {
				t.Errorf("%q: %+v, want %+v", code, got, want)
			}
		}
	})
}

func TestNodeOutput(t *testing.T) {
	nodes(t, func(t *testing.T, js nodejs) {
		b := js.open(t)
		b.prints("console.log(1); console.error(2); console.log(3); process.stderr.write('4'); process.stdout.write('5')", "1\n2\n3\n45")
		b.prints("console.log('a'); require('child_process').execSync('echo b', {stdio: 'inherit'}); console.log('c')", "a\nb\nc\n")
		b.prints("require('child_process').execSync('echo e >&2', {stdio: 'inherit'}); console.error('f')", "e\nf\n")
		b.prints("await new Promise((done) => require('child_process').spawn('sh', ['-c', 'echo later'], {stdio: 'inherit'}).on('exit', done)); undefined", "later\n")
		b.prints("setTimeout(() => console.log('after'), 20); undefined", "")
		b.prints("await new Promise((r) => setTimeout(r, 40))", "after\n")
		r, h := b.run("let got = ''; for await (const c of process.stdin) got += c; got")
		if r.Error != nil || h.all.Len() > 0 {
			t.Errorf("reading the input: %+v", r.Error)
		}
	})
}

func TestNodeErrors(t *testing.T) {
	nodes(t, func(t *testing.T, js nodejs) {
		b := js.open(t)
		for code, want := range map[string]cove.CodeError{
			"throw new TypeError('bad')": {Name: "TypeError", Value: "bad", Traceback: "TypeError: bad\n    at cell-N:1:7", Line: 1},
			"function f() {\n  throw new Error('deep')\n}\n\nf()": {
				Name: "Error", Value: "deep", Traceback: "Error: deep\n    at f (cell-N:2:9)\n    at cell-N:5:1", Line: 2,
			},
			"await 0\nthrow new RangeError('r')":     {Name: "RangeError", Value: "r", Traceback: "RangeError: r\n    at cell-N:2:7", Line: 2},
			"Promise.reject(new Error('p')); 5":      {Name: "Error", Value: "p", Traceback: "Error: p\n    at cell-N:1:16", Line: 1},
			"Promise.reject(new Error('q'))":         {Name: "Error", Value: "q", Traceback: "Error: q\n    at cell-N:1:16", Line: 1},
			"throw 'text'":                           {Name: "Uncaught", Value: "'text'"},
			"\nlet a = ;":                            {Name: "SyntaxError", Value: "Unexpected token ';'", Traceback: "cell-N:2\nlet a = ;\n        ^\n\nSyntaxError: Unexpected token ';'", Line: 2},
			"nobody":                                 {Name: "ReferenceError", Value: "nobody is not defined", Traceback: "ReferenceError: nobody is not defined\n    at cell-N:1:1", Line: 1},
			"({get x() { throw new Error('y') }}).x": {Name: "Error", Value: "y", Traceback: "Error: y\n    at get x (cell-N:1:19)\n    at cell-N:1:38", Line: 1},
		} {
			got := *b.raises(code)
			if i := strings.Index(got.Traceback, "cell-"); i >= 0 {
				n := strings.IndexByte(got.Traceback[i:], ':')
				got.Traceback = strings.ReplaceAll(got.Traceback, got.Traceback[i:i+n], "cell-N")
			}
			got.Traceback = strings.ReplaceAll(got.Traceback, " [as x]", "") // Node 22 leaves it out
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q: %s", code, diff)
			}
		}
		got := b.raises("await new Promise(() => setTimeout(() => { throw new Error('in a timer') }, 1))")
		if got.Value != "in a timer" || got.Line != 1 {
			t.Errorf("an error in a timer: %+v", got)
		}
		// One that comes between two runs is told to the next one, and is not its failure.
		var said strings.Builder
		b.prints("setTimeout(() => { throw new Error('too late') }, 20); undefined", "")
		for range 3 {
			r, h := b.run("require('child_process').execSync('sleep 0.05'); undefined")
			said.WriteString(h.err.String() + errorText(r))
		}
		if !strings.Contains(said.String(), "too late") {
			t.Errorf("an error between two runs is told as %q", said.String())
		}
		b.prints("process.on('uncaughtException', (e) => console.log('mine', e.message)); setTimeout(() => { throw new Error('e') }, 1); "+
			"await new Promise((r) => setTimeout(r, 20)); process.removeAllListeners('uncaughtException'); undefined", "mine e\n")
	})
}

func errorText(r *cove.CodeResult) string {
	if r.Error == nil {
		return ""
	}
	return r.Error.Value
}

func TestNodeExits(t *testing.T) {
	nodes(t, func(t *testing.T, js nodejs) {
		b := js.open(t)
		b.prints("const x = 1", "")
		for code, want := range map[string]int{
			"process.exit(3)": 3,
			"try { process.exit(4) } catch { console.log('caught') } finally { console.log('finally') }": 4,
			"await new Promise((r) => setTimeout(r, 1)); process.exit(5)":                                5,
			"setTimeout(() => process.exit(6), 1); await new Promise(() => {})":                          6,
			"process.exitCode = 7; undefined":                                                            7,
			"process.exit()":                                                                             0,
		} {
			r, h := b.run(code)
			if r.Error != nil || r.ExitCode != want || r.Outcome != cove.Exited || h.all.Len() > 0 {
				t.Errorf("%q ended with %d, %+v and wrote %q", code, r.ExitCode, r.Error, h.all.String())
			}
			b.shows("x", "1")
		}
		if r, h := b.run("process.on('uncaughtException', () => console.log('heard')); process.exit(8)"); r.ExitCode != 8 || h.all.Len() > 0 {
			t.Errorf("an exit is an error that was told: %+v, %q", r.Result, h.all.String())
		}
	})
}

// TestNodeAwaitsTheLost: a promise that nobody has can be awaited, and collected.
func TestNodeAwaitsTheLost(t *testing.T) {
	nodes(t, func(t *testing.T, js nodejs) {
		b := js.open(t)
		b.prints("require('v8').setFlagsFromString('--expose-gc'); const gc = require('vm').runInNewContext('gc')", "")
		for range 3 {
			r, h := b.run("let n = 0; const t = setInterval(() => { gc(); if (++n > 3) { clearInterval(t); process.exit(5) } }, 1); await new Promise(() => {})")
			if r.ExitCode != 5 || r.Error != nil || h.all.Len() > 0 {
				t.Fatalf("it ended with %+v and %+v", r.Result, r.Error)
			}
			b.prints("gc(); undefined", "")
		}
	})
}

func TestNodeIsInterrupted(t *testing.T) {
	nodes(t, func(t *testing.T, js nodejs) {
		b := js.open(t)
		b.prints("const x = 1", "")
		for _, code := range []string{
			"for (;;) {}",
			"try { for (;;) {} } catch {} finally { for (;;) {} }",
			"await 0; for (;;) {}",
			"await new Promise(() => {})",
			"require('child_process').execSync('sleep 60')",
			"({toJSON() { for (;;) {} }})",
		} {
			r, _ := b.within(code, cove.Limits{Wall: 2 * time.Second}) // a busy machine needs the longest grace
			if r.Outcome != cove.TimedOut || r.Error == nil || !strings.Contains(r.Error.Value, "kept") || !b.k.Alive() {
				t.Fatalf("%q is %s: %+v", code, r.Outcome, r.Error)
			}
			b.shows("x", "1")
		}
		// After it waited for something outside, code cannot be interrupted any more.
		r, _ := b.within("await new Promise((r) => setTimeout(r, 1)); for (;;) {}", cove.Limits{Wall: time.Second})
		if r.Outcome != cove.TimedOut || !strings.Contains(r.Error.Value, "gone") || b.k.Alive() {
			t.Errorf("it is %s: %+v", r.Outcome, r.Error)
		}
	})
}

// TestNodeHammered: no moment in which an interrupt comes is Node's end, with code
// that begins and ends under them again and again.
func TestNodeHammered(t *testing.T) {
	nodes(t, func(t *testing.T, js nodejs) {
		b := js.open(t)
		b.prints("const x = 1", "")
		ctx, stop := context.WithCancel(t.Context())
		var hammer sync.WaitGroup
		hammer.Go(func() {
			for ctx.Err() == nil {
				_ = b.k.Interrupt(ctx)
			}
		})
		for i := range 60 {
			code := []string{"for (;;) {}", "await new Promise(() => {})", "for (let i = 0; i < 1e5; i++);"}[i%3]
			if r, _ := b.within(code, cove.Limits{Wall: 20 * time.Second}); r.Outcome != cove.Exited || !b.k.Alive() {
				t.Errorf("%q is %s: %+v", code, r.Outcome, r.Error)
				break
			}
		}
		stop()
		hammer.Wait()
		b.shows("x", "1")
	})
}

func TestNodeWarm(t *testing.T) {
	nodes(t, func(t *testing.T, js nodejs) {
		b := openIn(t, js.host(t), cove.KernelSpec{Language: "node", Warm: true, Preload: []string{"fs", "no-such-module"}})
		if err := b.k.Adopt(t.Context(), b.host.Dir, map[string]string{"WORD": "given"}); err != nil {
			t.Fatal(err)
		}
		b.prints("console.log(process.cwd() === "+`"`+b.host.Dir+`"`+", process.env.WORD)", "true given\n")
		b.prints("fs.writeFileSync('m.mjs', 'export const v = 1'); undefined", "")
		b.shows("import {v} from './m.mjs'; v", "1")
		other := openIn(t, js.host(t), cove.KernelSpec{Language: "node", Warm: true})
		if err := other.k.Adopt(t.Context(), "/no/such/place", nil); cove.CodeOf(err) != cove.Invalid {
			t.Errorf("adopting into nowhere: %v", err)
		}
	})
}

// TestTypeScript runs where Node strips types; the one of the host may say that it does not.
func TestTypeScript(t *testing.T) {
	nodes(t, func(t *testing.T, js nodejs) {
		h := js.host(t)
		k, err := kernel.New().Open(t.Context(), h, cove.KernelSpec{Language: "typescript"})
		if cove.CodeOf(err) == cove.Unsupported && js.major == 0 {
			if !strings.Contains(cove.MessageOf(err), "cannot strip types") {
				t.Error(err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{t: t, host: h, k: k}
		t.Cleanup(func() { _ = k.Close(t.Context()) })
		b.prints("interface P { a: number }\nconst p: P = {a: 1}", "")
		b.shows("(p as P).a", "1")
		if js.major > 0 { // Node 26 has no enum
			b.shows("enum E { A = 5 }; (p as P).a + E.A", "6")
		}
		if e := b.raises("let n: number = ;"); e.Name != "SyntaxError" {
			t.Errorf("a mistake: %+v", e)
		}
	})
}
