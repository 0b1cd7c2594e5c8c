package local_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/local"
)

// computedVariables are those of bash that it computes, counts or keeps as numbers and
// lists, and one that it does not know; otherVariables are the rest of those that it sets
// or reads itself, by its manual and compgen -v.
const (
	computedVariables = `RANDOM OPTIND SRANDOM SECONDS BASHPID LINENO EPOCHSECONDS EPOCHREALTIME HISTCMD BASH_ARGV0 BASH_SUBSHELL BASH_COMPAT COMP_CWORD
DIRSTACK FUNCNAME GROUPS MAPFILE PIPESTATUS REPLY SHLVL UID x`
	otherVariables = `_ BASH BASHOPTS BASH_ALIASES BASH_ARGC BASH_ARGV BASH_CMDS BASH_COMMAND BASH_ENV BASH_EXECUTION_STRING BASH_LINENO
BASH_LOADABLES_PATH BASH_REMATCH BASH_SOURCE BASH_VERSINFO BASH_VERSION BASH_XTRACEFD CHILD_MAX COLUMNS COMP_KEY COMP_LINE COMP_POINT COMP_TYPE
COMP_WORDBREAKS COMP_WORDS COMPREPLY COPROC EMACS ENV EUID EXECIGNORE FCEDIT FIGNORE FUNCNEST GLOBIGNORE GLOBSORT HISTCONTROL HISTFILE HISTFILESIZE
HISTIGNORE HISTSIZE HISTTIMEFORMAT HOME HOSTFILE HOSTNAME HOSTTYPE IFS IGNOREEOF INPUTRC INSIDE_EMACS LANG LC_ALL LC_COLLATE LC_CTYPE LC_MESSAGES
LC_NUMERIC LC_TIME LINES MACHTYPE MAIL MAILCHECK MAILPATH OLDPWD OPTARG OPTERR OSTYPE PATH POSIXLY_CORRECT PPID PROMPT_COMMAND PROMPT_DIRTRIM PS0 PS1
PS2 PS3 PS4 PWD READLINE_ARGUMENT READLINE_LINE READLINE_MARK READLINE_POINT SHELL SHELLOPTS TEXTDOMAIN TIMEFORMAT TMOUT TMPDIR auto_resume histchars`
)

// assignments are ways to give VAR the value VALUE, and to compute with both.
var assignments = []string{
	`VAR='VALUE'`, `VAR+='VALUE'`, `VAR=1 VAR='VALUE' :`, `VAR='VALUE' command :`, `VAR=$(echo 'VALUE')`, `VAR=('VALUE')`, `VAR+=('VALUE')`,
	`declare VAR='VALUE'`, `declare 'VAR=VALUE'`, `declare -i VAR='VALUE'`, `declare -u VAR='VALUE'`, `declare -a VAR='(VALUE)'`, `declare -A VAR=([k]='VALUE')`, `typeset -g VAR='VALUE'`,
	`f() { local VAR='VALUE'; }; f`, `f() { local -i VAR='VALUE'; }; f`, `export VAR='VALUE'`, `export 'VAR=VALUE'`, `readonly VAR='VALUE'`, `eval VAR="'VALUE'"`,
	`read VAR <<< 'VALUE'`, `read -r VAR rest <<< 'VALUE'`, `read -ra VAR <<< 'VALUE'`, `read -rd '' VAR <<< 'VALUE'`, `while read VAR; do break; done <<< 'VALUE'`,
	`shopt -s lastpipe; echo 'VALUE' | read VAR`, `printf -v VAR %s 'VALUE'`, `printf -v VAR 'VALUE'`, `for VAR in 'VALUE'; do :; done`, `for ((VAR=VALUE; 0; )); do :; done`,
	`select VAR in 'VALUE'; do break; done <<< 1`, `mapfile -t VAR <<< 'VALUE'`, `mapfile -tO 0 VAR <<< 'VALUE'`, `readarray -t VAR <<< 'VALUE'`,
	`let VAR='VALUE'`, `let 'VAR+=VALUE'`, `((VAR=VALUE))`, `v='VALUE'; ((VAR=v))`, `v='VALUE'; ((VAR+=v))`, `v='VALUE'; let VAR=v`, `: $((VAR=VALUE))`,
	`v='VALUE'; : $((VAR=v))`, `unset VAR; : ${VAR:='VALUE'}`, `unset VAR; : ${VAR='VALUE'}`, `set -- -k 'VALUE'; getopts k: VAR`, `coproc VAR { :; }; VAR='VALUE'`,
	`declare -n r=VAR; r='VALUE'`, `declare -n r='VAR[VALUE]'; r=1`, `declare -n VAR='VALUE'; VAR=1`, `VAR[VALUE]=1`, `VAR=([VALUE]=1)`, `v='VALUE'; VAR[v]=1`, `v='VALUE'; : ${VAR[v]}`,
	`v='VALUE'; : ${VAR:v}`, `printf -v 'VAR[VALUE]' 1`, `read 'VAR[VALUE]' <<< 1`, `declare 'VAR[VALUE]=1'`, `unset 'VAR[VALUE]'`, `[[ -v 'VAR[VALUE]' ]]`, `[ -v 'VAR[VALUE]' ]`,
	`exec {VAR}< /dev/null; VAR='VALUE'`, `: & wait -p 'VAR[VALUE]' -n`, `VAR='VALUE'; : $((VAR))`, `VAR='VALUE'; [[ VAR -eq 0 ]]`, `VAR='VALUE'; [[ $VAR -lt 1 ]]`, `VAR='VALUE'; ((VAR++))`,
	`VAR='VALUE'; echo ${v[VAR]}`, `VAR='VALUE'; unset VAR; VAR='VALUE'; : $((VAR))`, `unset VAR; declare -i VAR; VAR='VALUE'`, `PS4='$((VALUE))'; VAR=VALUE; set -x; :`, `VAR='$((VALUE))'; : "${VAR@P}"`,
	`trap 'VAR="VALUE"; : $((VAR))' EXIT`, `f() { : $(($1)); }; f 'VALUE'`,
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,40}$`)

// assigning is a script that gives each variable, in a shell of its own, a value that
// makes a file by a redirection, and a directory by a program, when it is computed.
func assigning(variables, form string) string {
	var b strings.Builder
	for i, name := range strings.Fields(variables) {
		endless := name == "SHLVL" && strings.HasPrefix(form, "declare -n VAR=") // bash computes for ever
		if endless || !variable.MatchString(name) {
			continue
		}
		value := fmt.Sprintf("a[$(: > /workspace/%s.%d.f; /usr/bin/mkdir /workspace/%[1]s.%[2]d)]", name, i)
		fmt.Fprintf(&b, "(\n%s\n) </dev/null >/dev/null 2>&1\n", strings.NewReplacer("VAR", name, "VALUE", value).Replace(form))
	}
	return b.String()
}

// made runs a script in the sandbox's bash and returns the files that it made, and the
// directories, which no builtin of bash makes.
func made(t *testing.T, s cove.Sandbox, script string, list *cove.Programs) (files, dirs []string) {
	t.Helper()
	run := func(list *cove.Programs, argv ...string) string {
		var out bytes.Buffer
		p, err := s.Start(t.Context(), cove.Command{Argv: argv, Stdin: strings.NewReader(script), Stdout: &out, Programs: list, Limits: cove.Limits{Wall: 20 * time.Second, Output: cove.MiB}})
		must(t, err)
		_, err = p.Wait(t.Context())
		must(t, err)
		return out.String()
	}
	run(list, "bash")
	script = ""
	for name := range strings.FieldsSeq(run(nil, "sh", "-c", "cd /workspace; ls -p; rm -rf ./*")) {
		if dir, ok := strings.CutSuffix(name, "/"); ok {
			dirs = append(dirs, dir)
		} else {
			files = append(files, name)
		}
	}
	return files, dirs
}

// holding opens a provider that holds lists of programs.
func holding(tb testing.TB) *local.Provider {
	tb.Helper()
	p, err := local.New(config(tb.TempDir()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = p.Close() })
	caps, err := p.Probe(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	if !caps.Ready || caps.Isolation.Policy != cove.Hard {
		tb.Skip("this host does not keep programs to a list")
	}
	return p
}

var catOnly = &cove.Programs{Names: []string{"cat"}}

// smallOne is a sandbox in which bash cannot compute for ever in ever more processes.
func smallOne(t *testing.T, p *local.Provider) cove.Sandbox {
	t.Helper()
	s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Resources: cove.Resources{Memory: 256 * cove.MiB, PIDs: 64}})
	must(t, err)
	t.Cleanup(func() { must(t, p.Remove(context.WithoutCancel(t.Context()), s.ID())) })
	return s
}

// FuzzSpecialVariables assigns to special variables of bash what runs a program when it is
// computed, and compares bash under a list with bash as it is: both compute the same,
// and under the list no program runs.
func FuzzSpecialVariables(f *testing.F) {
	for _, form := range assignments {
		f.Add(computedVariables, form)
		if !testing.Short() {
			f.Add(otherVariables, form)
		}
	}
	p := holding(f)
	f.Fuzz(func(t *testing.T, variables, form string) {
		if len(variables) > 4<<10 || len(form) > 1<<10 || strings.ContainsRune(form, 0) {
			t.Skip("too much for one script")
		}
		s, script := smallOne(t, p), assigning(variables, form)
		computed, ran := made(t, s, script, catOnly)
		if len(ran) > 0 {
			t.Errorf("%q started a program that is not on the list, for %v", form, ran)
		}
		if !slices.Contains(assignments, form) {
			return // what a form that was made up does can depend on time and chance
		}
		free, ran := made(t, s, script, nil)
		if diff := cmp.Diff(free, computed); diff != "" {
			t.Errorf("%q: under a list, bash computes something else (-without +with): %s", form, diff)
		}
		if len(ran) != len(free) {
			t.Errorf("%q: without a list, bash computes %v and starts a program for %v", form, free, ran)
		}
	})
}

// TestSpecialVariables: without a list, bash runs a program for assignments of each form
// that a check of the syntax had once let pass, and for many more.
func TestSpecialVariables(t *testing.T) {
	s := smallOne(t, holding(t))
	var script strings.Builder
	for i, form := range assignments {
		script.WriteString(strings.ReplaceAll(assigning("RANDOM OPTIND SRANDOM SECONDS BASHPID", form), "/workspace/", fmt.Sprintf("/workspace/%d.", i)))
	}
	if _, all := made(t, s, script.String(), catOnly); len(all) > 0 {
		t.Errorf("under a list, a program ran for %v", all)
	}
	_, all := made(t, s, script.String(), nil)
	t.Logf("bash runs a program for %d of %d assignments", len(all), 5*len(assignments))
	if len(all) < 45 {
		t.Errorf("bash runs a program for %d assignments alone: %v", len(all), all)
	}
}
