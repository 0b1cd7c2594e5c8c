package policy

import "strings"

var (
	pythonFlags  = newPattern(`^-[uBEsSIOqbP]+$`)
	pythonCode   = newPattern(`^-[uBEsSIOqbP]*c`)
	pythonModule = newPattern(`^-[uBEsSIOqbP]*m`)
	pythonTells  = newPattern(`^(-V|-VV|--version|-h|--help)$`)
)

// runnableModules may be run with -m: they turn one text into another.
var runnableModules = words{"json.tool", "json", "base64", "calendar", "gzip", "csv", "tabnanny", "this"}

// pythonRule reads the options of python up to what it runs. A script in a file
// is not read; code on the command line, or in a here-document, is.
func pythonRule(j *judge, name arg, args []arg, in input) {
	for i, a := range args {
		flag := ""
		if dashed(a) || !a.literal {
			flag = a.text
		}
		switch {
		case a.literal && pythonFlags.MatchString(flag):
		case a.literal && pythonTells.MatchString(flag):
			return
		case pythonCode.MatchString(flag):
			j.pythonValue(name, args[i:], len(pythonCode.FindString(flag)), j.pythonText)
			return
		case pythonModule.MatchString(flag):
			j.pythonValue(name, args[i:], len(pythonModule.FindString(flag)), j.pythonModule)
			return
		case a.literal && a.text == "-":
			j.pythonInput(name, in)
			return
		case dashed(a):
			j.refuse(a.at, RuleOption, a.word, "%s %s is not looked into", name.text, a.text)
			return
		default:
			j.pythonScript(a)
			return
		}
	}
	j.pythonInput(name, in)
}

// pythonValue finds the value of -c or -m: the rest of the argument, or the
// next one.
func (j *judge) pythonValue(name arg, args []arg, used int, judge func(arg)) {
	a := args[0]
	if a.literal && used == len(a.text) {
		if len(args) == 1 {
			return
		}
		judge(args[1])
		return
	}
	if !a.single || used == len(a.text) {
		j.refuse(a.at, RuleArgument, a.word, "what %s runs must be written out", name.text)
		return
	}
	a.text = a.text[used:]
	if a.mold {
		a.code = a.code[used:]
	}
	judge(a)
}

func (j *judge) pythonText(a arg) {
	if !a.mold {
		j.refuse(a.at, RulePython, a.word, "python code must be written out, but for numbers in double quotes; hand values over as arguments and read sys.argv")
		return
	}
	if reason := pythonReason(a.code); reason != "" {
		j.refuse(a.at, RulePython, a.word, "%s", reason)
	}
}

func (j *judge) pythonModule(a arg) {
	if !a.literal || !runnableModules.has(a.text) {
		j.refuse(a.at, RulePython, a.word, "the module that python -m runs must be written out and be a harmless one, such as json.tool")
	}
}

// pythonScript takes the name of a file. It must be one: /dev/stdin and its kin
// would be read like code on the standard input, only unseen.
func (j *judge) pythonScript(a arg) {
	switch {
	case !a.literal:
		j.refuse(a.at, RuleArgument, a.word, "the script that python runs must be written out")
	case strings.HasPrefix(a.text, "/dev/") || strings.HasPrefix(a.text, "/proc/"):
		j.refuse(a.at, RulePython, a.word, "%s is not a file", a.text)
	}
}

func (j *judge) pythonInput(name arg, in input) {
	if !in.known {
		j.refuse(name.at, RulePython, name.text, "python would run what it reads; write the code to a file, or into a here-document with a quoted end such as <<'EOF'")
		return
	}
	if reason := pythonReason(in.text); reason != "" {
		j.refuse(in.at, RulePython, name.text, "%s", reason)
	}
}
