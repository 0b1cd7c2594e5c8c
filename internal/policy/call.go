package policy

import (
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

// builtins are those of bash. True is for those that run a text as commands, or
// change what a name stands for: the names in that text cannot be found.
var builtins = map[string]bool{
	":": false, "true": false, "false": false, "echo": false, "printf": false, "read": false, "mapfile": false, "readarray": false,
	"test": false, "[": false, "pwd": false, "cd": false, "pushd": false, "popd": false, "dirs": false, "exit": false, "return": false,
	"break": false, "continue": false, "shift": false, "set": false, "unset": false, "shopt": false, "trap": false, "wait": false,
	"jobs": false, "bg": false, "fg": false, "disown": false, "suspend": false, "kill": false, "times": false, "umask": false, "ulimit": false,
	"type": false, "getopts": false, "caller": false, "logout": false, "help": false, "command": false, "exec": false, "let": false,
	"declare": false, "typeset": false, "local": false, "export": false, "readonly": false,

	".": true, "source": true, "eval": true, "builtin": true, "alias": true, "unalias": true, "enable": true, "hash": true,
	"bind": true, "complete": true, "compgen": true, "compopt": true, "fc": true, "history": true,
}

// call judges a command by its name, in the order in which the shell looks for
// it: a function, a builtin, a program.
func (s *script) call(args []arg) {
	name := args[0]
	hides, is := builtins[name.text]
	switch {
	case name.literal && s.functions[name.text]:
		s.found(name, name.text, KindFunction)
	case name.literal && is:
		s.found(name, name.text, KindBuiltin)
		if hides {
			s.refuse(name.at, RuleBuiltin, name.text, "the builtin %s runs a text as commands, or changes what the name of a command stands for; write the commands themselves", name.text)
		}
		s.behindBuiltin(name.text, args[1:])
	default:
		s.program(args)
	}
}

// behindBuiltin looks at the command that some builtins run.
func (s *script) behindBuiltin(name string, args []arg) {
	switch name {
	case "trap":
		if len(args) > 1 && args[0].literal && args[0].text != "-" && !dashed(args[0]) {
			s.line(args[0].text, &args[0].at)
		}
	case "command":
		if len(args) > 0 && (args[0].text == "-v" || args[0].text == "-V") {
			return
		}
		if args = behindOptions(args, ""); len(args) > 0 {
			if _, is := builtins[args[0].text]; is && args[0].literal {
				s.call(args)
				return
			}
			s.program(args)
		}
	case "exec":
		if args = behindOptions(args, "a"); len(args) > 0 {
			s.program(args)
		}
	}
}

// argv judges a program that is started without a shell.
func (j *judge) argv(argv []string) {
	args := make([]arg, len(argv))
	size := 0
	for i, text := range argv {
		args[i] = arg{word: text, text: text, literal: true}
		size += len(text)
	}
	if size > maxSource {
		j.refuse(place{}, RuleSize, "", "the command is %d bytes long and the most is %d; write the data to a file first", size, maxSource)
		return
	}
	j.program(args)
}

// program judges a program by the lists, and those that it is told to start.
func (j *judge) program(args []arg) {
	name := args[0]
	if !name.literal {
		j.refuse(name.at, RuleName, name.word, "the name of a program must be written out; what this expands to is only known when it runs")
		return
	}
	known, ok := bare(name.text)
	if !ok {
		j.add(name, name.text, KindProgram, cove.Deny)
		j.refuse(name.at, RulePath, name.text, "a program must be named alone, or by its path in /bin, /usr/bin or /usr/local/bin")
		return
	}
	if j.found(name, known, KindProgram) != cove.Deny {
		j.behindProgram(known, args[1:])
	}
}

// launchers are programs that start the one in their arguments, with the letters of
// the options that take the next argument for their value.
var launchers = map[string]string{
	"env": "uC", "xargs": "nLPsdaEI", "nice": "n", "nohup": "", "setsid": "", "stdbuf": "ioe", "time": "fo", "timeout": "ks",
}

// behindProgram looks at the command that some programs are told to run, so that it
// is refused early and asked about. It need not find all of them.
func (j *judge) behindProgram(name string, args []arg) {
	switch values, launches := launchers[name]; {
	case launches:
		args = behindOptions(args, values)
		if name == "timeout" && len(args) > 0 {
			args = args[1:]
		}
		for name == "env" && len(args) > 0 && strings.Contains(args[0].word, "=") {
			args = args[1:]
		}
		if len(args) > 0 {
			j.program(args)
		}
	case name == "find":
		for i := 0; i+1 < len(args); i++ {
			if slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, args[i].text) {
				inner := args[i+1:]
				if end := slices.IndexFunc(inner, func(a arg) bool { return a.text == ";" }); end > 0 {
					inner = inner[:end]
				}
				j.program(inner)
				i += len(inner)
			}
		}
	case slices.Contains([]string{"bash", "sh", "dash"}, name):
		for i := 0; i+1 < len(args) && dashed(args[i]); i++ {
			if line := args[i+1]; line.literal && shellRuns.MatchString(args[i].text) {
				j.line(line.text, &line.at)
				return
			}
		}
	}
}

var shellRuns = newPattern(`^-[a-z]*c$`)

// dashed reports an argument that is an option.
func dashed(a arg) bool { return a.literal && len(a.text) > 1 && a.text[0] == '-' }

// behindOptions skips options, and the values of those that end in one of the letters.
func behindOptions(args []arg, values string) []arg {
	for len(args) > 0 && dashed(args[0]) {
		option := args[0].text
		args = args[1:]
		if option == "--" {
			break
		}
		if option[1] != '-' && strings.ContainsRune(values, rune(option[len(option)-1])) && len(args) > 0 {
			args = args[1:]
		}
	}
	return args
}

// found writes a command down and applies the lists to its name. A builtin
// needs no entry to be allowed.
func (j *judge) found(name arg, known string, kind Kind) cove.Effect {
	effect := cove.Allow
	switch {
	case kind == KindFunction:
	case j.list.deny[known]:
		effect = cove.Deny
		j.refuse(name.at, RuleDenied, name.text, "%s is denied by the command policy %s", known, j.list.name)
	case j.list.ask[known]:
		effect = cove.Ask
		j.ask(name, known, kind)
	case kind == KindProgram && !j.list.allow[known]:
		effect = cove.Deny
		j.refuse(name.at, RuleUnlisted, name.text, "%.80q is not a program that the command policy %s allows", known, j.list.name)
	}
	j.add(name, known, kind, effect)
	return effect
}

// maxPrograms bounds what is written down; judging goes on.
const maxPrograms = 1000

func (j *judge) add(name arg, known string, kind Kind, effect cove.Effect) {
	if len(j.programs) < maxPrograms {
		j.programs = append(j.programs, Program{
			Name: shown(known), Kind: kind, Effect: effect, Line: name.at.line, Column: name.at.column,
		})
	}
}
