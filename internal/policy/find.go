package policy

import "strings"

// findTests are the words of find's language that are harmless, with the number
// of arguments that each takes.
var findTests = map[string]int{
	"-name": 1, "-iname": 1, "-path": 1, "-ipath": 1, "-wholename": 1, "-iwholename": 1, "-regex": 1, "-iregex": 1,
	"-regextype": 1, "-lname": 1, "-ilname": 1, "-type": 1, "-xtype": 1, "-size": 1, "-perm": 1, "-user": 1, "-group": 1,
	"-uid": 1, "-gid": 1, "-links": 1, "-inum": 1, "-samefile": 1, "-fstype": 1, "-used": 1,
	"-mtime": 1, "-mmin": 1, "-atime": 1, "-amin": 1, "-ctime": 1, "-cmin": 1, "-newer": 1, "-anewer": 1, "-cnewer": 1,
	"-newermt": 1, "-newerat": 1, "-newerct": 1, "-newermm": 1, "-maxdepth": 1, "-mindepth": 1, "-printf": 1,
	"-fprint": 1, "-fprint0": 1, "-fls": 1, "-fprintf": 2,
	"-print": 0, "-print0": 0, "-ls": 0, "-prune": 0, "-quit": 0, "-empty": 0, "-readable": 0, "-writable": 0,
	"-executable": 0, "-depth": 0, "-d": 0, "-xdev": 0, "-mount": 0, "-follow": 0, "-daystart": 0, "-noleaf": 0,
	"-nouser": 0, "-nogroup": 0, "-true": 0, "-false": 0, "-warn": 0, "-nowarn": 0, "-ignore_readdir_race": 0,
	"-a": 0, "-and": 0, "-o": 0, "-or": 0, "-not": 0, "!": 0, "(": 0, ")": 0, ",": 0,
	"-H": 0, "-L": 0, "-P": 0,
}

var findRuns = words{"-exec", "-execdir", "-ok", "-okdir"}

// findRule reads find's expression. An argument that is not written out may be
// a place to start from, if it starts like a file name, or the argument of a
// test.
func findRule(j *judge, name arg, args []arg, in input) {
	for i := 0; i < len(args); {
		a := args[i]
		n, isTest := findTests[a.text]
		switch {
		case !a.literal && !a.operand:
			j.refuse(a.at, RuleArgument, a.word, "%s could take this for an action; write it out, put ./ in front of it, or quote it behind a test such as -name", name.text)
			return
		case a.literal && isTest:
			i++
			for ; n > 0 && i < len(args); n-- {
				if !args[i].single {
					j.refuse(args[i].at, RuleArgument, args[i].word, "this could become several words; put it in quotes")
					return
				}
				i++
			}
		case a.literal && findRuns.has(a.text):
			used := j.findExec(a, args[i+1:], in)
			if used < 0 {
				return
			}
			i += 1 + used
		case a.literal && !a.operand && a.text != "":
			j.refuse(a.at, RuleFind, a.word, "%s %s is not looked into, or is more than a search", name.text, a.text)
			return
		default:
			i++
		}
	}
}

// findExec judges the command behind -exec and returns how many arguments it
// took, with the ; or + at its end, or −1 if there is none. find puts file
// names in place of every {}; they start as the places do that it looked in.
func (j *judge) findExec(action arg, args []arg, in input) int {
	for i, a := range args {
		if !a.literal && (!a.single || a.text == "" || strings.IndexByte(";+", a.text[0]) >= 0) {
			j.refuse(a.at, RuleArgument, a.word, "this could be the ; at the end of what %s runs; write it out", action.text)
			return -1
		}
		plus := a.text == "+" && i > 0 && args[i-1].literal && args[i-1].text == "{}"
		if !a.literal || a.text != ";" && !plus {
			continue
		}
		if i == 0 {
			break
		}
		inner := make([]arg, i)
		for k, b := range args[:i] {
			if at := strings.Index(b.text, "{}"); at >= 0 {
				b.literal, b.mold, b.operand = false, false, at == 0 || operandStart(b.text[0])
				b.text = b.text[:at]
			}
			inner[k] = b
		}
		j.program(inner, in)
		return i + 1
	}
	j.refuse(action.at, RuleFind, action.word, "%s needs a command and a ; at its end", action.text)
	return -1
}
