package kernel_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
)

func bash(t *testing.T) *bench {
	t.Helper()
	need(t, "/bin/bash")
	return open(t, cove.KernelSpec{Language: "bash"})
}

// ends runs code that must end with a code, and without an error.
func (b *bench) ends(code string, want int) {
	b.t.Helper()
	r, h := b.run(code)
	if r.Error != nil || r.ExitCode != want || r.Outcome != cove.Exited {
		b.t.Errorf("%.80q ended with %d, %+v and wrote %q", code, r.ExitCode, r.Error, h.all.String())
	}
}

// state is all that a shell can remember, and recall says it.
const (
	state = `x=5; f() { echo "f $x"; }; declare -A m=([a]=1 ["b c"]=2); arr=(1 '2 3' $'4\n5'); declare -i num=3; declare -r fixed=1
export WORD=kept; export -f f; mkdir -p d; cd d; shopt -s extglob; alias ll='ls -l'; set -- one 'two three'; umask 027
trap 'echo usr' USR1; set -o pipefail`
	recall = `f; echo "${m[b c]} ${arr[2]} $fixed $1,$2 $(umask) ${PWD##*/}"; num=1+1; echo $num; bash -c 'f; echo $WORD'
echo @(a|b); alias ll; kill -USR1 $$; false | true; echo $?`
	recalled = "f 5\n2 4\n5 1 one,two three 0027 d\n2\nf \nkept\n@(a|b)\nalias ll='ls -l'\nusr\n1\n"
)

func TestBashRemembers(t *testing.T) {
	b := bash(t)
	b.prints(state, "")
	b.prints(recall, recalled)
	b.prints("", "")
	b.prints("# nothing", "")
	b.prints("exec 3>file; echo hidden >&3", "")
	b.prints("echo more >&3; cat file; exec 3>&-", "hidden\nmore\n")
	b.prints("set -u; set -f", "")
	b.prints("echo * $-", "* fhuBc\n")
}

func TestBashEnds(t *testing.T) {
	for code, want := range map[string]int{
		"exit 3":                      3,
		"set -e; false; echo no":      1,
		"set -u; echo $nobody":        127,
		": ${nobody:?is missing}":     127,
		"g() { local z; exit 5; }; g": 5,
		"trap 'exit 7' EXIT; exit 1":  7,
		"break; echo no":              0,
		"set -o posix; exit 4":        4,
	} {
		t.Run(code, func(t *testing.T) {
			b := bash(t)
			b.prints(state, "")
			b.ends(code, want)
			b.prints("set +eu +o posix; trap - EXIT; "+recall, recalled)
			b.ends("exit 9", 9)
			b.prints(recall, recalled)
		})
	}
	b := bash(t)
	b.prints("trap 'echo bye $x' EXIT; x=1", "")
	if r, h := b.run("exit 2"); r.ExitCode != 2 || h.all.String() != "bye 1\n" {
		t.Errorf("with a trap it ended with %d and wrote %q", r.ExitCode, h.all.String())
	}
	b.ends("false", 1)
	b.ends("(exit 4)", 4)
	b.ends("return 3", 2)
	b.ends("continue", 0)
	b.ends("nobody_knows_it", 127)
}

func TestBashErrors(t *testing.T) {
	b := bash(t)
	for code, want := range map[string]cove.CodeError{
		"echo a\n)\necho b":         {Name: "SyntaxError", Value: "syntax error near unexpected token `)'", Line: 2},
		"echo 'never":               {Name: "SyntaxError", Value: "unexpected EOF while looking for matching `''", Line: 1},
		"if true; then":             {Name: "SyntaxError", Value: "syntax error: unexpected end of file", Line: 2},
		"touch made\necho $((1+))(": {Name: "SyntaxError", Value: "syntax error near unexpected token `('", Line: 2},
	} {
		if diff := cmp.Diff(&want, b.raises(code)); diff != "" {
			t.Errorf("%q: %s", code, diff)
		}
	}
	if r, h := b.run("cd /; echo 1\nnobody\ncd /nowhere"); r.Error != nil || h.out.String() != "1\n" ||
		h.err.String() != "/bin/bash: line 2: nobody: command not found\n/bin/bash: line 3: cd: /nowhere: No such file or directory\n" {
		t.Errorf("%+v: %q", r.Error, h.all.String())
	}
	if _, err := b.k.Run(t.Context(), cove.KernelRun{Code: "echo \x00"}); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("a NUL byte: %v", err)
	}
	// The two streams are apart: which of them is heard first is not certain.
	if r, h := b.run("cat <<E\nopen to the end"); r.Error != nil || h.out.String() != "open to the end\n" ||
		h.err.String() != "/bin/bash: line 2: warning: here-document at line 1 delimited by end-of-file (wanted `E')\n" {
		t.Errorf("%+v: %q, %q", r.Error, h.out.String(), h.err.String())
	}
}

func TestBashStreams(t *testing.T) {
	b := bash(t)
	b.prints("read line; echo $?; cat", "1\n")
	b.prints("exec >file; echo in the file", "")
	b.prints("cat file", "in the file\n")
	b.prints("exec 2>&- 1>&-; true", "")
	b.prints("exec 0<&-; echo back", "back\n")
	b.prints("ls /proc/self/fd | grep -c 25 || true", "0\n") // nothing of the driver's
	b.prints("sleep 60 & jobs -r | grep -c sleep", "1\n")
	b.prints("{ kill %1; wait $!; } 2>/dev/null; echo $?", "143\n")
	b.prints("(sleep 0.05; echo later) & true", "")
	b.prints("wait", "later\n")
}

func TestBashIsInterrupted(t *testing.T) {
	b := bash(t)
	b.prints(state, "")
	for _, code := range []string{
		"sleep 60; echo no",
		"while :; do :; done; echo no",
		"for i in 1 2 3; do sleep 20; done; echo no",
		"sleep 60 & wait; echo no",
		"(sleep 60); echo no",
		"set -e; cat /dev/zero >/dev/null | sleep 60",
	} {
		r, h := b.within(code, cove.Limits{Wall: 300 * time.Millisecond})
		if r.Outcome != cove.TimedOut || r.Error == nil || !strings.Contains(r.Error.Value, "kept") || h.out.Len() > 0 || !b.k.Alive() {
			t.Fatalf("%q is %s and wrote %q: %+v", code, r.Outcome, h.all.String(), r.Error)
		}
		b.prints("set +e; "+recall, recalled)
	}
	r, h := b.within("trap 'echo mine' INT; sleep 60", cove.Limits{Wall: 300 * time.Millisecond})
	if r.Outcome != cove.TimedOut || !strings.Contains(r.Error.Value, "kept") || h.out.String() != "mine\n" {
		t.Errorf("with a trap it is %s and wrote %q: %+v", r.Outcome, h.all.String(), r.Error)
	}
	r, _ = b.within("trap '' INT; sleep 60", cove.Limits{Wall: 300 * time.Millisecond})
	if r.Outcome != cove.TimedOut || !strings.Contains(r.Error.Value, "kept") {
		t.Errorf("with none it is %s: %+v", r.Outcome, r.Error)
	}
}

func TestBashWarm(t *testing.T) {
	need(t, "/bin/bash")
	b := open(t, cove.KernelSpec{Language: "bash", Warm: true, Preload: []string{"x"}})
	if err := b.k.Adopt(t.Context(), b.host.Dir, map[string]string{"WORD": "it's \"given\"\n", "LC_ALL": "C.UTF-8", "no name": "x"}); err != nil {
		t.Fatal(err)
	}
	b.prints(`[[ $PWD == `+b.host.Dir+` ]] && printenv WORD && x=é && echo ${#x}`, "it's \"given\"\n\n1\n")
	other := open(t, cove.KernelSpec{Language: "bash", Warm: true})
	if err := other.k.Adopt(t.Context(), "/no/such/place", nil); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("adopting into nowhere: %v", err)
	}
}
