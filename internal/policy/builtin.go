package policy

import (
	"slices"
	"sync"
)

// builtinRule judges the arguments of a builtin.
type builtinRule func(s *script, name arg, args []arg)

// builtins are those of bash. One without a rule is refused.
var builtins = sync.OnceValue(func() map[string]builtinRule {
	return map[string]builtinRule{
		":": harmless, "true": harmless, "false": harmless, "echo": harmless, "pwd": harmless, "cd": harmless,
		"exit": harmless, "return": harmless, "break": harmless, "continue": harmless, "shift": harmless,
		"pushd": harmless, "popd": harmless, "dirs": harmless, "times": harmless, "umask": harmless, "type": harmless,
		"jobs": bareOnly,

		"test": testCommand, "[": testCommand, "printf": printfCommand, "read": readCommand,
		"mapfile": mapfileCommand, "readarray": mapfileCommand, "set": setCommand, "unset": unsetCommand,
		"shopt": shoptCommand, "trap": trapCommand, "wait": waitCommand,

		// Those that run the command behind them are looked into by call.
		"command": harmless, "exec": harmless,

		// Plain uses of these are parsed as declarations; what comes here is quoted
		// or hidden behind another command.
		"declare": nil, "typeset": nil, "local": nil, "export": nil, "readonly": nil, "let": nil,

		".": nil, "source": nil, "eval": nil, "builtin": nil, "alias": nil, "unalias": nil, "enable": nil,
		"hash": nil, "bind": nil, "complete": nil, "compgen": nil, "compopt": nil, "fc": nil, "history": nil,
		"getopts": nil, "caller": nil, "bg": nil, "fg": nil, "disown": nil, "suspend": nil, "logout": nil,
		"kill": nil, "ulimit": nil, "help": nil,
	}
})

// harmless takes any arguments: it starts nothing and computes nothing.
func harmless(*script, arg, []arg) {}

// bareOnly takes no arguments: jobs -x runs a command.
func bareOnly(s *script, name arg, args []arg) {
	if len(args) > 0 {
		s.refuse(args[0].at, RuleBuiltin, args[0].word, "%s can only be used without arguments", name.text)
	}
}

// variable checks that an argument is the plain name of a variable that may be
// set to anything. A subscript would be computed, and run what is in it.
func (s *script) variable(name, a arg) {
	switch {
	case !a.literal:
		s.refuse(a.at, RuleArgument, a.word, "the variable that %s sets must be written out", name.text)
	case !identifier.MatchString(a.text):
		s.refuse(a.at, RuleArithmetic, a.word, "%s can only set a variable with a plain name; the shell would compute the rest", name.text)
	case guardedName(a.text) || checkedValues(a.text) != nil:
		s.refuse(a.at, RuleVariable, a.text, "%s changes what programs run or load, or how the shell reads; it cannot be set", a.text)
	}
}

var conversions = newPattern(`^([^%]|%%|%[-+ #0]*(\*|[0-9]+)?(\.(\*|[0-9]+)?)?[hlLjzt]*[diouxXfFeEgGaAcsbq]|%\([^()]*\)T)*$`)

// printfCommand judges printf [-v name] format [argument…]. A format that is
// not written out could be -v, or hold %n, which sets a variable.
func printfCommand(s *script, name arg, args []arg) {
	if len(args) > 1 && args[0].literal && args[0].text == "-v" {
		s.variable(name, args[1])
		args = args[2:]
	}
	options := true
	if len(args) > 0 && args[0].literal && args[0].text == "--" {
		args, options = args[1:], false
	}
	switch {
	case len(args) == 0:
	case !args[0].literal:
		s.refuse(args[0].at, RuleArgument, args[0].word, "the format of printf must be written out; use printf '%%s\\n' \"…\"")
	case options && dashed(args[0]):
		s.refuse(args[0].at, RuleBuiltin, args[0].word, "put -- before a format that starts with a dash, and -v name apart from each other")
	case !conversions.MatchString(args[0].text):
		s.refuse(args[0].at, RuleBuiltin, args[0].word, "this format does more than print")
	}
}

// readOptions are those of read, mapfile and readarray that are harmless.
var (
	readFlags     = newPattern(`^-[rs]*([nNtu][0-9.]+|d.)?$`)
	readValues    = newPattern(`^-[rs]*([dnNptu])$`)
	readArray     = newPattern(`^-[rs]*a$`)
	mapfileFlags  = newPattern(`^-t$`)
	mapfileValues = newPattern(`^-t?([dnsu])$`)
)

// readCommand judges read: nothing but options, then names.
func readCommand(s *script, name arg, args []arg) {
	for len(args) > 0 && args[0].literal && len(args[0].text) > 1 && args[0].text[0] == '-' {
		switch option := args[0].text; {
		case readFlags.MatchString(option) && option != "-":
			args = args[1:]
		case readValues.MatchString(option) && len(args) > 1 && args[1].single:
			args = args[2:]
		case readArray.MatchString(option) && len(args) > 1:
			s.variable(name, args[1])
			args = args[2:]
		default:
			s.refuse(args[0].at, RuleOption, args[0].word, "read %s is not looked into; use -r, -s, -a name, -d, -n, -N, -p, -t and -u, each with its value apart", option)
			return
		}
	}
	for _, a := range args {
		s.variable(name, a)
	}
}

// mapfileCommand judges mapfile: -C would run a command for each line.
func mapfileCommand(s *script, name arg, args []arg) {
	for len(args) > 0 && args[0].literal && len(args[0].text) > 1 && args[0].text[0] == '-' {
		switch option := args[0].text; {
		case mapfileFlags.MatchString(option):
			args = args[1:]
		case mapfileValues.MatchString(option) && len(args) > 1 && args[1].single:
			args = args[2:]
		default:
			s.refuse(args[0].at, RuleOption, args[0].word, "%s %s is not looked into; use -t, -d, -n, -s and -u, each with its value apart", name.text, option)
			return
		}
	}
	if len(args) > 1 {
		s.refuse(args[1].at, RuleBuiltin, args[1].word, "%s takes one name", name.text)
	}
	for _, a := range args[:min(len(args), 1)] {
		s.variable(name, a)
	}
}

var (
	setFlags   = newPattern(`^[-+][euxvfC]+$`)
	setWithO   = newPattern(`^[-+][euxvfC]*o$`)
	setOptions = []string{"pipefail", "errexit", "nounset", "xtrace", "verbose", "noglob", "noclobber"}
)

// setCommand judges set: a few options, and -- with new parameters.
func setCommand(s *script, _ arg, args []arg) {
	for len(args) > 0 {
		a := args[0]
		switch {
		case a.literal && a.text == "--":
			return
		case a.literal && setFlags.MatchString(a.text):
			args = args[1:]
		case a.literal && setWithO.MatchString(a.text) && len(args) > 1 && args[1].literal && slices.Contains(setOptions, args[1].text):
			args = args[2:]
		default:
			s.refuse(a.at, RuleBuiltin, a.word, "set can only take -e -u -x -v -f -C, -o pipefail and the like, and -- with new parameters")
			return
		}
	}
}

// unsetCommand judges unset: plain names of variables that nothing depends on.
func unsetCommand(s *script, name arg, args []arg) {
	if len(args) > 0 && args[0].literal && args[0].text == "-v" {
		args = args[1:]
	}
	for _, a := range args {
		s.variable(name, a)
		_, isMap := s.maps[a.text]
		if isMap || s.functions[a.text] != nil {
			s.refuse(a.at, RuleFunction, a.word, "%s is a function or an associative array and cannot be unset", a.text)
		}
	}
}

var shoptOptions = []string{"nullglob", "failglob", "dotglob", "globstar", "nocaseglob", "nocasematch", "inherit_errexit"}

func shoptCommand(s *script, _ arg, args []arg) {
	for i, a := range args {
		flag := i == 0 && (a.text == "-s" || a.text == "-u" || a.text == "-q")
		if !a.literal || !flag && !slices.Contains(shoptOptions, a.text) {
			s.refuse(a.at, RuleBuiltin, a.word, "shopt can only change how file names are matched: %v", shoptOptions)
			return
		}
	}
}

// trapCommand lets a script ignore a signal or take that back.
func trapCommand(s *script, _ arg, args []arg) {
	if len(args) > 0 && !(args[0].literal && (args[0].text == "" || args[0].text == "-")) {
		s.refuse(args[0].at, RuleBuiltin, args[0].word, "a trap runs commands later and is not looked into; only '' and - can be set")
	}
}

// waitCommand takes process numbers: wait -p sets a variable.
func waitCommand(s *script, name arg, args []arg) {
	for _, a := range args {
		if !a.operand && !a.number && !(a.literal && a.text == "-n") {
			s.refuse(a.at, RuleArgument, a.word, "%s can only take process numbers, such as $!", name.text)
		}
	}
}
