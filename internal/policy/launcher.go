package policy

import (
	"slices"
	"strings"
)

// launcher is a program that runs the command in its arguments.
type launcher struct {
	flags  *pattern // options without a value, or with it attached
	values *pattern // options whose value is the next argument
	skip   int      // operands before the command
}

var launchers = map[string]launcher{
	"nice":    {flags: newPattern(`^(-[0-9]+|-n-?[0-9]+|--adjustment=-?[0-9]+)$`), values: newPattern(`^(-n|--adjustment)$`)},
	"nohup":   {flags: newPattern(`^$`), values: newPattern(`^$`)},
	"setsid":  {flags: newPattern(`^-[cfw]+$`), values: newPattern(`^$`)},
	"stdbuf":  {flags: newPattern(`^-[ioe][0-9LKMG]+$`), values: newPattern(`^-[ioe]$`)},
	"time":    {flags: newPattern(`^-[pvqa]+$`), values: newPattern(`^-[fo]$`)},
	"timeout": {flags: newPattern(`^(-v|--verbose|--foreground|--preserve-status|-k[0-9.]+[smhd]?|-s[A-Z0-9]+|--kill-after=[0-9.]+[smhd]?|--signal=[A-Z0-9]+)$`), values: newPattern(`^-[ks]$`), skip: 1},
}

func (l launcher) judge(j *judge, name arg, args []arg, in input) {
	args, ok := j.behindOptions(name, args, l.flags, l.values)
	if !ok || len(args) < l.skip {
		return
	}
	for _, a := range args[:l.skip] {
		if !a.single || !a.operand {
			j.refuse(a.at, RuleArgument, a.word, "what %s does with this is only known when it runs", name.text)
			return
		}
	}
	if args = args[l.skip:]; len(args) > 0 {
		j.program(args, in)
	}
}

// behindOptions skips the options of a launcher. What is left starts with the
// command, or whatever stands before it.
func (j *judge) behindOptions(name arg, args []arg, flags, values *pattern) ([]arg, bool) {
	for len(args) > 0 {
		a := args[0]
		switch {
		case !a.literal && !a.operand:
			j.refuse(a.at, RuleArgument, a.word, "what %s does with this is only known when it runs", name.text)
			return nil, false
		case a.literal && a.text == "--":
			return args[1:], true
		case !dashed(a):
			return args, true
		case values.MatchString(a.text) && len(args) > 1 && args[1].single:
			args = args[2:]
		case flags.MatchString(a.text):
			args = args[1:]
		default:
			j.refuse(a.at, RuleOption, a.word, "%s %s is not looked into", name.text, a.text)
			return nil, false
		}
	}
	return nil, true
}

var (
	envFlags  = newPattern(`^(-i|-0|--ignore-environment|--null|--unset=[A-Za-z_][A-Za-z0-9_]*|--chdir=.*)$`)
	envValues = newPattern(`^(-u|-C|--unset|--chdir)$`)
)

// envRule looks into env name=value … command. Its -S makes words of a text.
func envRule(j *judge, name arg, args []arg, in input) {
	args, ok := j.behindOptions(name, args, envFlags, envValues)
	for ok && len(args) > 0 {
		variable, val, isSet := strings.Cut(args[0].text, "=")
		if !isSet {
			j.program(args, in)
			return
		}
		check := checkedValues(variable)
		if guardedName(variable) || check != nil && (!args[0].literal || !check(val)) {
			j.refuse(args[0].at, RuleVariable, args[0].word, "%s changes what programs run or load; it cannot be set", variable)
		}
		if !args[0].single {
			j.refuse(args[0].at, RuleArgument, args[0].word, "this could become several words; put it in double quotes")
		}
		args = args[1:]
	}
}

var (
	xargsFlags   = newPattern(`^(-[0rtx]+|-[nLPs][0-9]+|-d.|-d\\.|--null|--no-run-if-empty|--verbose|--max-args=[0-9]+|--max-procs=[0-9]+|--max-lines=[0-9]+|--delimiter=.*|-[0rtx]*I.+)$`)
	xargsValues  = newPattern(`^-[0rtx]*[nLPsdaEI]$`)
	xargsReplace = newPattern(`^-[0rtx]*I(.*)$`)
)

// xargsRule looks into xargs command …, which gets arguments that nobody knows
// yet: at the end, or in place of the word after -I.
func xargsRule(j *judge, name arg, args []arg, in input) {
	mark := ""
	for i, a := range args[:max(len(args)-1, 0)] {
		m := xargsReplace.FindStringSubmatch(a.text)
		if m == nil || !a.literal {
			continue
		}
		if mark = m[1]; mark != "" {
			continue
		}
		if mark = args[i+1].text; mark == "" || !args[i+1].literal {
			j.refuse(args[i+1].at, RuleArgument, args[i+1].word, "the word that xargs replaces must be written out")
			return
		}
	}
	inner, ok := j.behindOptions(name, args, xargsFlags, xargsValues)
	if !ok || len(inner) == 0 {
		return
	}
	if mark == "" {
		j.program(append(slices.Clone(inner), unknown("what xargs reads", name.at)), in)
		return
	}
	replaced := make([]arg, len(inner))
	for i, a := range inner {
		if strings.Contains(a.text, mark) || !a.literal {
			a = arg{at: a.at, word: a.word, single: a.single}
		}
		replaced[i] = a
	}
	j.program(replaced, in)
}

var (
	watchFlags  = newPattern(`^-[bcdegtx]+$|^-n[0-9.]+$`)
	watchValues = newPattern(`^-n$`)
)

// watchRule looks into watch command …, which hands its arguments to a shell.
func watchRule(j *judge, name arg, args []arg, _ input) {
	args, ok := j.behindOptions(name, args, watchFlags, watchValues)
	if !ok {
		return
	}
	var words []string
	for _, a := range args {
		if !a.literal {
			j.refuse(a.at, RuleArgument, a.word, "what watch hands to the shell must be written out")
			return
		}
		words = append(words, a.text)
	}
	j.innerLine(plainAt(strings.Join(words, " "), name.word, name.at), bash, posix)
}
