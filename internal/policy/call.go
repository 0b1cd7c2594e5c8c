package policy

import "github.com/cove-sandbox/cove"

// call judges a command by its name, in the order in which the shell looks for
// it: a function, a builtin, a program.
func (s *script) call(args []arg, in input) {
	name := args[0]
	if !name.literal {
		s.refuse(name.at, RuleName, name.word, "the name of a command must be written out; what this expands to is only known when it runs")
		return
	}
	if s.functions[name.text] != nil {
		s.callFunction(name)
		return
	}
	if rule, is := builtins()[name.text]; is {
		s.builtin(name, rule, args[1:], in)
		return
	}
	s.program(args, in)
}

func (s *script) builtin(name arg, rule builtinRule, args []arg, in input) {
	s.found(name, name.text, KindBuiltin)
	switch {
	case rule == nil:
		s.refuse(name.at, RuleBuiltin, name.text, "the builtin %s runs or hides other commands and is not looked into", name.text)
	case name.text == "command":
		s.behindCommand(args, in)
	case name.text == "exec":
		s.behindExec(args, in)
	default:
		rule(s, name, args)
	}
}

// dashed reports an argument that is an option, or could be one.
func dashed(a arg) bool { return a.literal && len(a.text) > 0 && a.text[0] == '-' }

// behindCommand looks into command name …, which passes over functions, and
// lets command -v name tell.
func (s *script) behindCommand(args []arg, in input) {
	if len(args) == 0 {
		return
	}
	inner := args[0]
	rule, is := builtins()[inner.text]
	switch {
	case dashed(inner) && (inner.text == "-v" || inner.text == "-V"):
	case dashed(inner):
		s.refuse(inner.at, RuleOption, inner.word, "command can only take -v")
	case inner.literal && is:
		s.builtin(inner, rule, args[1:], in)
	default:
		s.program(args, in)
	}
}

// behindExec looks into exec name …; without a name it only redirects.
func (s *script) behindExec(args []arg, in input) {
	switch {
	case len(args) == 0:
	case dashed(args[0]):
		s.refuse(args[0].at, RuleOption, args[0].word, "exec can take no options")
	default:
		s.program(args, in)
	}
}

// argv judges a program that is started without a shell.
func (j *judge) argv(argv []string) {
	args := make([]arg, len(argv))
	size := 0
	for i, text := range argv {
		args[i] = plain(text)
		size += len(text)
	}
	if size > maxSource {
		j.refuse(place{}, RuleSize, "", "the command is %d bytes long and the most is %d; write the data to a file first", size, maxSource)
		return
	}
	j.program(args, input{})
}

// program judges a program: its name by the lists, and its arguments by the
// rules for what it does with them.
func (j *judge) program(args []arg, in input) {
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
	if j.found(name, known, KindProgram) == cove.Deny {
		return
	}
	if rule := programRule(known); rule != nil {
		rule(j, name, args[1:], in)
	}
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
		j.ask(name.at, name.text, "the command policy %s wants a person to agree before %s runs", j.list.name, known)
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
