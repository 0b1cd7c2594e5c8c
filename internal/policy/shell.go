package policy

import "strings"

var (
	shellFlags = newPattern(`^-[euxf]+$`)
	shellRuns  = newPattern(`^-[euxf]*c$`)
)

// bashRule looks into bash -c line.
func bashRule(j *judge, name arg, args []arg, _ input) { j.shell(name, args, bash) }

// shRule looks into sh -c line. What sh is differs between systems, so the line
// must pass as bash reads it and as a plain shell does.
func shRule(j *judge, name arg, args []arg, _ input) { j.shell(name, args, bash, posix) }

func (j *judge) shell(name arg, args []arg, langs ...lang) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.literal && shellRuns.MatchString(a.text):
			if i+1 == len(args) {
				return
			}
			if !args[i+1].literal {
				j.refuse(args[i+1].at, RuleArgument, args[i+1].word, "what %s runs must be written out", name.text)
				return
			}
			j.innerLine(args[i+1], langs...)
			return
		case a.literal && shellFlags.MatchString(a.text):
		case a.literal && a.text == "-o" && i+1 < len(args) && args[i+1].literal && args[i+1].text == "pipefail":
			i++
		default:
			j.refuse(a.at, RuleShell, a.word, "%s can only be used as %s -c 'commands'; a script in a file cannot be looked into", name.text, name.text)
			return
		}
	}
	j.refuse(name.at, RuleShell, name.text, "%s would run what it reads; use %s -c 'commands'", name.text, name.text)
}

// innerLine judges a line inside an argument. All that it holds is at the place
// of the argument, and its variables may come from outside.
func (j *judge) innerLine(a arg, langs ...lang) {
	if j.nested >= maxNested {
		j.refuse(a.at, RuleDepth, a.word, "shells are nested more than %d deep", maxNested)
		return
	}
	j.nested++
	defer func() { j.nested-- }()
	if strings.TrimSpace(a.text) == "" {
		return
	}
	before := len(j.programs)
	for i, l := range langs {
		if i > 0 {
			j.programs = j.programs[:before] // found a second time
		}
		at := a.at
		j.line(script{src: newSource(a.text, &at), lang: l})
	}
}
