package policy

import "strings"

var (
	// sortValue ends with an option whose value is the next argument, and
	// sortAttached holds the start of its value.
	sortValue    = newPattern(`^-[bdfghimMnRrVscCuz]*[ktoST]$|^--(key|field-separator|output|buffer-size|temporary-directory)$`)
	sortAttached = newPattern(`^-[bdfghimMnRrVscCuz]*[ktoST]|^--(key|field-separator|output|buffer-size|temporary-directory)=`)
)

// sortRule keeps out --compress-program, in all the ways to shorten it.
func sortRule(j *judge, name arg, args []arg, _ input) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.literal && a.text == "--":
			return
		case a.literal && strings.HasPrefix(a.text, "--co"):
			j.refuse(a.at, RuleOption, a.word, "%s %s starts a program", name.text, a.text)
		case a.literal && sortValue.MatchString(a.text) && i+1 < len(args):
			if i++; !args[i].single {
				j.refuse(args[i].at, RuleArgument, args[i].word, "this could become several words or none; put it in double quotes")
			}
		case a.literal, a.operand, attached(a, sortAttached):
		default:
			j.refuse(a.at, RuleArgument, a.word, "%s", couldBeOption)
		}
	}
}

// couldBeOption is the reason against an operand that is not written out.
const couldBeOption = "this could start with a dash and be taken for an option; put -- before it, or ./ in front of it"
