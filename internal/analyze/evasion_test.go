package analyze_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/analyze"
	"github.com/cove-sandbox/cove/internal/policy"
)

// evasions are ways to get at os. Each must be refused in mode block, on the line
// that is named. module is what the report must name among others; ? means that
// only running the code would tell.
var evasions = []struct {
	name, code string
	line       int
	module     string
}{
	{"plain", "import os", 1, "os"},
	{"a submodule", "import os.path", 1, "os.path"},
	{"renamed", "import os as harmless", 1, "os"},
	{"behind others", "import math, json, os", 1, "os"},
	{"on several lines", "import math, \\\n  os", 2, "os"},
	{"behind a semicolon", "x = 1; import os", 1, "os"},
	{"from it", "from os import system", 1, "os"},
	{"from it, renamed", "from os import system as s", 1, "os"},
	{"all of it", "from os import *", 1, "os"},
	{"from a submodule", "from os.path import join", 1, "os.path"},
	{"in a function", "def f():\n  def g():\n    import os\n  return g", 3, "os"},
	{"in a class", "class A:\n  import os", 2, "os"},
	{"in a branch never taken", "if False:\n  import os", 2, "os"},
	{"when another fails", "try:\n  import x\nexcept ImportError:\n  import os", 4, "os"},
	{"after a form feed", "\f\nimport os", 2, "os"},
	{"with tabs", "if 1:\n\timport\tos", 2, "os"},
	{"in other letters", "import 𝐨𝐬", 1, "os"},
	{"behind await", "await f()\nimport os", 2, "os"},
	{"in a match", "match x:\n  case 1:\n    import os", 3, "os"},

	{"by name", `__import__("os")`, 1, "os"},
	{"by a keyword", `__import__(name="os")`, 1, "os"},
	{"by name, and used", `__import__("os").system("id")`, 1, "os"},
	{"by two names", `__import__("o" "s")`, 1, "os"},
	{"by a sum", `__import__("o" + "s")`, 1, "os"},
	{"by an f-string", `__import__(f"o{'s'}")`, 1, "os"},
	{"by a format", `__import__("{}{}".format("o", "s"))`, 1, "os"},
	{"by a percent", `__import__("%ss" % "o")`, 1, "os"},
	{"by a join", `__import__("".join(["o", "s"]))`, 1, "os"},
	{"backwards", `__import__("so"[::-1])`, 1, "os"},
	{"by case", `__import__("OS".lower())`, 1, "os"},
	{"by a replacement", `__import__("oXs".replace("X", ""))`, 1, "os"},
	{"by numbers", `__import__(chr(111) + chr(115))`, 1, "os"},
	{"by bytes", `__import__(bytes([111, 115]).decode())`, 1, "os"},
	{"by hexadecimal", `__import__(bytes.fromhex("6f73").decode())`, 1, "os"},
	{"by base64", "import base64\n__import__(base64.b64decode('b3M=').decode())", 2, "os"},
	{"by an escape", `__import__("\x6f\163")`, 1, "os"},
	{"by a variable", "m = 'os'\n__import__(m)", 2, "os"},
	{"by a variable that grows", "m = 'o'\nm += 's'\n__import__(m)", 3, "os"},
	{"by one of two", "m = 'os' if x else 'math'\n__import__(m)", 2, "os"},
	{"by a loop", "for m in ['math', 'os']:\n  __import__(m)", 2, "os"},
	{"by a comprehension", "[__import__(m) for m in ('math', 'os')]", 1, "os"},
	{"by unpacking", "a, b = 'o', 's'\n__import__(a + b)", 2, "os"},
	{"by a default", "def f(m='os'):\n  return __import__(m)", 2, "os"},
	{"by a dictionary", "d = {'a': 'os'}\n__import__(d['a'])", 2, "os"},
	{"by what nobody knows", "__import__(input())", 1, "?"},
	{"by an attribute", "__import__(self.module)", 1, "?"},
	{"by many arguments", "__import__(*['os'])", 1, "?"},
	{"by a map of arguments", "__import__(**{'name': 'os'})", 1, "?"},

	{"the function renamed", "f = __import__\nf('os')", 2, "os"},
	{"the function renamed twice", "f = __import__\ng = f\ng('os')", 3, "os"},
	{"renamed in the wrong order", "def a():\n  g('os')\ng = f\nf = __import__", 2, "os"},
	{"renamed in passing", "(f := __import__)('os')", 1, "os"},
	{"renamed with a type", "f: object = __import__\nf('os')", 2, "os"},
	{"renamed for later calls", "f = __import__", 1, "?"},
	{"chosen", "(__import__ if x else print)('os')", 1, "os"},
	{"handed to a function", "list(map(__import__, ['os']))", 1, "?"},
	{"handed on under a name that the code sets", "__import__ = __import__\nlist(map(__import__, ['os']))", 1, "?"},
	{"handed on under a parameter's name", "def f(exec=0): pass\nlist(map(exec, ['import os']))", 2, "?"},
	{"handed on after a name was free again", "exec = 1\ndel exec\nlist(map(exec, ['import os']))", 3, "?"},
	{"handed on as a default", "def f(exec=exec): return exec\nlist(map(f(), ['import os']))", 1, "?"},
	{"by a level", `__import__("path", {"__package__": "os"}, None, ["x"], 1)`, 1, "?"},
	{"by a level's keyword", `__import__("path", globals=g, level=1)`, 1, "?"},
	{"relative to a package that is set", "__package__ = 'os'\nfrom . import path", 1, "?"},
	{"relative to a name that is set", "__name__ = 'os.x'\nfrom . import path", 1, "?"},
	{"relative to a package among the globals", "globals()['__package__'] = 'os'\nfrom . import path", 1, "?"},
	{"relative to a package that is handed on", "globals().update(__package__='os')\nfrom . import path", 1, "?"},
	{"relative in globals of its own", "exec('from . import path', {'__package__': 'os'})", 1, "?"},
	{"by a variable among the globals", "m = 'math'\nglobals()['m'] = 'os'\n__import__(m)", 3, "os"},
	{"by the loader below importlib", "import _frozen_importlib as f\nf._gcd_import('os')", 1, "_frozen_importlib"},
	{"by a module's description", "import json\njson.__spec__.loader.load_module('os')", 2, "?"},
	{"by what finds modules", "import sys\nsys.meta_path[0].load_module('os')", 2, "?"},
	{"from what finds modules", "from sys import meta_path", 1, "?"},
	{"by help", "import pydoc\npydoc.safeimport('os')", 2, "os"},
	{"in bytes behind a space", `eval(b' __import__("os")')`, 1, "os"},
	{"in text of another grammar", "from __future__ import barry_as_FLUFL\nexec('import os\\n1 <> 2')", 2, "os"},
	{"handed to a lambda", "(lambda f: f('os'))(__import__)", 1, "?"},
	{"put into a list", "[__import__][0]('os')", 1, "os"},
	{"called by its method", "__import__.__call__('os')", 1, "os"},
	{"returned", "def f():\n  return __import__\nf()('os')", 2, "?"},
	{"kept in a class", "class A:\n  __class_getitem__ = __import__\nA['os']", 2, "?"},
	{"a decorator", "@eval\n@str\ndef f(): pass", 1, "?"},
	{"bound, then shadowed", "exec('import os')\nexec = 1", 1, "os"},
	{"a method of the same name", "class A:\n  def eval(self): pass\nx = eval", 3, "?"},

	{"from builtins", "import builtins\nbuiltins.__import__('os')", 2, "os"},
	{"from builtins, renamed", "from builtins import __import__ as f\nf('os')", 2, "os"},
	{"from __builtins__", "__builtins__.__import__('os')", 1, "os"},
	{"from __builtins__ as a dictionary", "__builtins__['__import__']('os')", 1, "os"},
	{"from __dict__", "import builtins\nbuiltins.__dict__['__import__']('os')", 2, "os"},
	{"from vars", "import builtins\nvars(builtins)['__import__']('os')", 2, "os"},
	{"by get", "__builtins__.__dict__.get('__import__')('os')", 1, "os"},
	{"by getattr", "getattr(__builtins__, '__import__')('os')", 1, "os"},
	{"by getattr and a sum", "getattr(__builtins__, '__imp' + 'ort__')('os')", 1, "os"},
	{"by getattr of who knows", "import builtins\ngetattr(builtins, x)('os')", 2, "?"},
	{"from globals", "globals()['__builtins__'].__import__('os')", 1, "os"},
	{"from the globals of a function", "f.__globals__['__builtins__']['__import__']('os')", 1, "?"},
	{"from what a builtin belongs to", "print.__self__.__import__('os')", 1, "os"},
	{"from all classes", "().__class__.__base__.__subclasses__()", 1, "?"},
	{"from a loader", "__loader__.load_module('os')", 1, "builtins"},

	{"importlib", "import importlib\nimportlib.import_module('os')", 2, "os"},
	{"importlib renamed", "import importlib as i\ni.import_module('os')", 2, "os"},
	{"import_module", "from importlib import import_module\nimport_module('os')", 2, "os"},
	{"import_module renamed", "from importlib import import_module as m\nm('os')", 2, "os"},
	{"import_module by getattr", "import importlib\ngetattr(importlib, 'import_module')('os')", 2, "os"},
	{"import_module by a keyword", "import importlib\nimportlib.import_module(name='os')", 2, "os"},
	{"import_module of a part", "import importlib\nimportlib.import_module('.path', 'os')", 2, "os.path"},
	{"importlib by __import__", "__import__('importlib').import_module('os')", 1, "os"},
	{"importlib's own __import__", "import importlib\nimportlib.__import__('os')", 2, "os"},
	{"a spec", "import importlib.util\nimportlib.util.find_spec('os')", 2, "os"},
	{"pkgutil", "import pkgutil\npkgutil.resolve_name('os:system')", 2, "os"},
	{"pydoc", "from pydoc import locate\nlocate('os')", 2, "os"},

	{"what is loaded already", "import sys\nsys.modules['os'].system('id')", 2, "os"},
	{"what is loaded already, by get", "import sys\nsys.modules.get('os')", 2, "os"},
	{"what is loaded already, in an earlier call", "sys.modules['os']", 1, "os"},
	{"all that is loaded already", "import sys\nlist(sys.modules.values())", 2, "?"},
	{"all that is loaded already, handed on", "import sys\nf(sys.modules)", 2, "?"},
	{"what is loaded already, from it", "from sys import modules as m\nm['os']", 2, "os"},
	{"carried by another module", "import glob\nglob.os.system('id')", 2, "os"},
	{"carried under another name", "import random\nrandom._os.system('id')", 2, "os"},
	{"carried, by getattr", "import glob\ngetattr(glob, 'o' + 's')", 2, "os"},
	{"carried, imported in an earlier call", "glob.os.system('id')", 1, "os"},
	{"carried, by its dictionary", "import glob\nvars(glob)['os']", 2, "os"},
	{"carried by a module of others", "import pandas as pd\npd.io.common.os.system('id')", 2, "os"},
	{"taken from another module", "from glob import os", 1, "os"},

	{"exec", "exec('import os')", 1, "os"},
	{"exec on a later line", "x = 1\nexec('''\nimport os\n''')", 2, "os"},
	{"exec renamed", "e = exec\ne('import os')", 2, "os"},
	{"exec of a variable", "s = 'import os'\nexec(s)", 2, "os"},
	{"exec of a sum", "exec('import ' + 'os')", 1, "os"},
	{"exec of bytes", "exec(b'import os')", 1, "os"},
	{"exec of bytes in another coding", "exec(b'# coding: utf-7\\nimport +AG8-s')", 1, "os"},
	{"exec of what compile made", "exec(compile('import os', '', 'exec'))", 1, "os"},
	{"what compile made, run by hand", "import types\ntypes.FunctionType(compile('import os', '', 'exec'), {})()", 2, "os"},
	{"what a builtin belongs to, for later calls", "b = print.__self__", 1, "builtins"},
	{"exec in exec", `exec("exec('import os')")`, 1, "os"},
	{"exec in exec, four times", nested(4), 1, "os"},
	{"exec in exec, nine times", nested(9), 1, "?"},
	{"exec of what nobody knows", "exec(x)", 1, "?"},
	{"exec from builtins", "import builtins\nbuiltins.exec('import os')", 2, "os"},
	{"exec of names outside", "m = 'os'\nexec('__import__(m)')", 2, "os"},
	{"eval", `eval("__import__('os')")`, 1, "os"},
	{"eval with spaces", `eval("  __import__('os')")`, 1, "os"},
	{"eval in eval", `eval("eval(\"__import__('os')\")")`, 1, "os"},
	{"eval with globals", `eval("__import__('os')", {})`, 1, "os"},
	{"timeit", "import timeit\ntimeit.timeit('1', setup='import os')", 2, "os"},
}

// innocent is code that mentions os and does not import it.
var innocent = map[string]string{
	"a comment":                 "# import os\nx = 1",
	"a comment behind code":     "x = 1  # __import__('os')",
	"a string":                  "x = 'import os'",
	"a printed string":          `print("import os; __import__('os')")`,
	"a docstring":               "def f():\n  \"\"\"import os\n\n  >>> import os\n  \"\"\"",
	"a long string":             "x = '''\nimport os\nimport subprocess\n'''",
	"a raw string":              `x = r"import\s+os"`,
	"an f-string":               "n = 1\nx = f'import os {n}'",
	"bytes":                     "x = b'import os'",
	"a variable":                "os = 'linux'\nprint(os)",
	"a variable with attribute": "os = Thing()\nos.system('id')",
	"an attribute":              "self.os = 'linux'\nprint(self.os.system)",
	"a method":                  "class A:\n  def os(self): return 1\nA().os()",
	"a parameter":               "def f(os): return os\nf(os='x')",
	"a lambda's parameter":      "f = lambda os: os",
	"a function":                "def os(): pass",
	"a class":                   "class subprocess: pass",
	"a key":                     "d = {'os': 1}\nd['os']\nd.get('os')",
	"a variable called eval":    "eval = False\nif eval: pass\ntrain(eval, eval=eval)",
	"another compile":           "from re import compile\ncompile(pattern)",
	"a compile of its own":      "def compile(x): return x\ncompile(y)",
	"what a module is called":   "if __name__ == '__main__': print(__package__, m.__path__, {'__doc__': 1})",
	"a path of metadata":        "self.meta_path",
	"a relative import":         "from . import os",
	"a relative module":         "from .os import path",
	"a longer name":             "import osmnx, socketio, importlib_metadata",
	"another's submodule":       "from scipy import signal\nimport scipy.signal",
	"another's attribute":       "import numpy as np\nnp.array([1]).os\ndf.os",
	"a pattern":                 "import re\nre.compile('import os').match('import os')",
	"a method called eval":      "df.eval('os + 1')\nmodel.eval()",
	"a method called exec":      "session.exec('import os')",
	"a flag called eval":        "def run(eval=False):\n  if eval: return [eval]",
	"eval of a number":          "eval('1 + 1')",
	"exec of harmless code":     "exec('x = 1')",
	"exec of a comment":         "exec('# import os')",
	"eval of a string":          `eval("'import os'")`,
	"__import__ of another":     "__import__('math').sqrt(2)",
	"a type":                    "x: 'os' = 1",
	"an assertion":              "assert text == 'import os', 'no import os'",
	"usual imports":             "import math, json, datetime, random, re, itertools, collections\nfrom urllib.parse import quote\nimport pandas as pd\nimport numpy as np",
	"text that grows":           "s = ''\nfor i in range(10):\n  s += 'os'\n  t = s + 'import os'\n  u = t + s\nprint(u)",
	"a list that is walked":     "node = head\nwhile node:\n  node = node.next",
	"time.time and the like":    "import time, datetime, glob\ntime.time(), datetime.datetime.now(), glob.glob('*')",
	"sys":                       "import sys\nprint(sys.version, sys.platform)",
	"getattr of a thing":        "getattr(thing, 'os')",
	"a global":                  "def f():\n  global os\n  os = 1",
	"a chain of replacements":   "text" + strings.Repeat(".replace('a', 'b')", 60) + "\nx = 'os'" + strings.Repeat(".lower()", 60),
	"a chain of methods":        "df" + strings.Repeat(".join(x).get('os')", 30),
	"a question of modules":     "import sys\nprint('os' in sys.modules)",
	"names of earlier calls":    "print(df, node.os, eval_result)\nfor x in rows: total += x['os']",
	"a match":                   "match x:\n  case {'os': y}: pass\n  case os: pass",
	"an exception":              "try: pass\nexcept ValueError as os: print(os)",
}

// nested is code in so many literals.
func nested(depth int) string {
	code := "import os"
	for range depth {
		code = "exec(" + strconv.Quote(code) + ")"
	}
	return code
}

func rules(t *testing.T, imports policy.Imports) *policy.Policy {
	t.Helper()
	p, err := policy.New(policy.Config{Imports: imports})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// judge is what becomes of code in mode block.
func judge(p *policy.Policy, report *cove.SecurityReport) cove.Decision {
	return p.Decide(cove.Action{
		Verb: cove.ContextRun, Principal: cove.Principal{Scopes: []cove.Scope{cove.ScopeExec}},
		Code: &cove.CodeRequest{Language: "python", Imports: cove.ImportsBlock}, Report: report,
	})
}

func TestEvasions(t *testing.T) {
	h, a, p := newHost(t), analyze.New(), rules(t, policy.Imports{})
	if len(evasions) < 100 || len(innocent) < 40 {
		t.Errorf("there are %d evasions and %d innocents", len(evasions), len(innocent))
	}
	for _, c := range evasions {
		report, err := a.Analyze(t.Context(), h, "python", c.code)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		blocked := p.Dangerous(report.Imports)
		if d := judge(p, report); d.Effect != cove.Deny || d.Layer != cove.Content || d.Refusal.Rule != policy.RuleImport || d.Refusal.Line == 0 {
			t.Errorf("%s: %q: %+v: %+v", c.name, c.code, d, report)
		}
		if !slices.ContainsFunc(blocked, func(i cove.Import) bool { return i.Module == c.module && i.Line == c.line && i.Column > 0 }) {
			t.Errorf("%s: %q: want %s on line %d among the blocked %+v, %+v", c.name, c.code, c.module, c.line, blocked, report.Syntax)
		}
	}
	if n := h.Started(); n != 1 {
		t.Errorf("%d processes were started, want one for all", n)
	}
}

func TestInnocents(t *testing.T) {
	h, a, p := newHost(t), analyze.New(), rules(t, policy.Imports{})
	for name, code := range innocent {
		report, err := a.Analyze(t.Context(), h, "py", code)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := judge(p, report); d.Effect != cove.Allow || report.Syntax != nil || len(p.Dangerous(report.Imports)) > 0 {
			t.Errorf("%s: %q: %+v: %+v", name, code, d.Refusal, report)
		}
	}
}
