package kernel_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
)

// with runs code with variables of its own and returns what it wrote.
func (b *bench) with(code string, env map[string]string) string {
	b.t.Helper()
	h := &heard{keep: 1 << 20}
	r, err := b.k.Run(b.t.Context(), cove.KernelRun{Code: code, Env: env, Limits: cove.Limits{Wall: time.Minute}, OnOutput: h.hear})
	if err != nil {
		b.t.Fatalf("%.80q: %v", code, err)
	}
	if r.Outcome != cove.Exited {
		b.t.Errorf("%.80q ended as %+v", code, r.Result)
	}
	return h.all.String()
}

// lending is how a language says what its variables are, and changes or breaks them.
type lending struct {
	say     string // prints A, B and C with spaces, and "-" for what is not there
	keep    string // sets A to kept, for itself and its children
	change  string // sets A and B to changed
	raise   string
	leave   string // ends the program, as far as that is possible
	replace string // puts something else in the place of the environment, or ""
}

// TestEnvironmentOfOneRun: variables of one run are gone after it, and others are what
// they were, however it ended.
func TestEnvironmentOfOneRun(t *testing.T) {
	try := func(t *testing.T, b *bench, l lending) {
		t.Helper()
		b.prints(l.keep, "")
		b.prints(l.say, "kept - -\n")
		lent := map[string]string{"A": "a b", "B": "ü\n'\"$x", "C": ""}
		const seen = "a b ü\n'\"$x \n"
		for _, code := range []string{"", l.change, l.raise, l.leave, l.replace} {
			if got := b.with(l.say, lent); got != seen {
				t.Errorf("it saw %q, want %q", got, seen)
			}
			if code != "" {
				b.with(code, lent)
			}
			if got := b.with(l.say, nil); code != l.replace && got != "kept - -\n" {
				t.Errorf("after %.40q it saw %q", code, got)
			}
		}
	}
	t.Run("python", func(t *testing.T) {
		b := python(t)
		try(t, b, lending{
			say:     "import os, subprocess; n = subprocess.run(['sh', '-c', 'echo \"${A-\"-\"} ${B-\"-\"} ${C-\"-\"}\"'])",
			keep:    "import os; os.environ['A'] = 'kept'",
			change:  "os.environ['A'] = os.environ['B'] = 'changed'",
			raise:   "1 / 0",
			leave:   "raise SystemExit(3)",
			replace: "os.environ = {}",
		})
		if got := b.with("import time; print(time.tzname[0])", map[string]string{"TZ": "XYZ-3"}); got != "XYZ\n" {
			t.Errorf("the zone is %q", got)
		}
		b.prints("print(time.tzname[0] != 'XYZ')", "True\n")
	})
	t.Run("bash", func(t *testing.T) {
		b := bash(t)
		try(t, b, lending{
			say:    `sh -c 'echo "${A--} ${B--} ${C--}"'`,
			keep:   "export A=kept",
			change: "A=changed; B=changed",
			raise:  "false",
			leave:  "exit 3",
		})
		b.prints("unset A; A=mine; declare -r fixed=1", "")
		if got := b.with(`echo "$A $LC_ALL"; sh -c 'echo "$A"'`, map[string]string{"A": "x", "LC_ALL": "C", "fixed": "2"}); got != "x C\nx\n" {
			t.Errorf("it saw %q", got)
		}
		b.prints(`echo "$A $fixed ${LC_ALL-none}"; sh -c 'echo "${A-none}"'`, "mine 1 none\nnone\n")
	})
	t.Run("node", func(t *testing.T) {
		nodes(t, func(t *testing.T, js nodejs) {
			try(t, js.open(t), lending{
				say:     "void process.stdout.write(require('child_process').execSync(`echo \"\\${A--} \\${B--} \\${C--}\"`))",
				keep:    "void (process.env.A = 'kept')",
				change:  "process.env.A = process.env.B = 'changed'",
				raise:   "null.x",
				leave:   "process.exit(3)",
				replace: "void (process.env = {PATH: process.env.PATH})",
			})
		})
	})
}

func TestReservedNames(t *testing.T) {
	b := bash(t)
	_, err := b.k.Run(t.Context(), cove.KernelRun{Code: "echo", Env: map[string]string{"__cove_runs": "x"}})
	if cove.CodeOf(err) != cove.Invalid {
		t.Errorf("a name of the driver's gave %v", err)
	}
	b.prints("echo on", "on\n")
}

// TestShown: values are told when they are shown, and which is that of the last
// expression.
func TestShown(t *testing.T) {
	b := python(t)
	type seen struct {
		Text string
		Main bool
	}
	var got []seen
	run := func(code string) *cove.CodeResult {
		t.Helper()
		got = nil
		r, err := b.k.Run(t.Context(), cove.KernelRun{
			Code: code, Limits: cove.Limits{Wall: time.Minute},
			OnOutput: func(c cove.Chunk) { got = append(got, seen{Text: "out " + string(c.Data)}) },
			OnResult: func(v cove.Rich, main bool) {
				got = append(got, seen{v["text/plain"], main})
				clear(v) // it is the caller's
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := run("display(1); print(2); display(3); 4")
	if diff := cmp.Diff([]seen{{"1", false}, {"out 2\n", false}, {"3", false}, {"4", true}}, got); diff != "" {
		t.Errorf("in turn (-want +got):\n%s", diff)
	}
	if r.Main != 3 || len(r.Results) != 3 || r.Results[2]["text/plain"] != "4" || r.Count != 1 {
		t.Errorf("the answer has main %d of %v, count %d", r.Main, r.Results, r.Count)
	}
	if r := run("display(5)\nx = 1"); r.Main != 0 || r.Count != 2 || len(got) != 1 {
		t.Errorf("the answer has main %d of %v, count %d", r.Main, r.Results, r.Count)
	}
	if r := run("1 / 0"); r.Main != 0 || r.Count != 3 {
		t.Errorf("the answer has main %d of %v, count %d", r.Main, r.Results, r.Count)
	}
}

func TestNodeMain(t *testing.T) {
	nodes(t, func(t *testing.T, js nodejs) {
		b := js.open(t)
		if r, _ := b.run("1 + 1"); r.Main != 1 || r.Count != 1 {
			t.Errorf("main %d, count %d of %v", r.Main, r.Count, r.Results)
		}
		if r, _ := b.run("void 0"); r.Main != 0 || r.Count != 2 {
			t.Errorf("main %d, count %d of %v", r.Main, r.Count, r.Results)
		}
	})
}
