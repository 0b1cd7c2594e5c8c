package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// declare and its kin take a value in parentheses apart once more when the
// variable is an array: declare -a a='($(rm x))' runs rm. So a value that could
// begin with a parenthesis is refused where the variable could be an array.

// takenApart judges the value of an assignment that is an argument of declare.
func (s *script) takenApart(a *syntax.Assign) {
	if a.Value == nil || a.Array != nil {
		return
	}
	text, known := literal(a.Value)
	if known {
		if strings.HasPrefix(text, "(") && strings.ContainsAny(text, "$`[<>") {
			s.reject(a.Value, RuleArgument, "the shell would take this value apart once more if the variable is an array; write the list without quotes")
		}
		return
	}
	if mayOpenList(a.Value.Parts) && s.mayBeArray(a.Name.Value) {
		s.reject(a.Value, RuleArgument, "the shell may take this value apart once more, since the variable may be an array; assign without declare")
	}
}

// mayOpenList reports whether a word could begin with a parenthesis.
func mayOpenList(parts []syntax.WordPart) bool {
	if len(parts) == 0 {
		return false
	}
	switch p := parts[0].(type) {
	case *syntax.Lit:
		return strings.HasPrefix(strings.TrimPrefix(p.Value, `\`), "(")
	case *syntax.SglQuoted:
		return p.Value == "" || p.Dollar || strings.HasPrefix(p.Value, "(")
	case *syntax.DblQuoted:
		return len(p.Parts) == 0 || mayOpenList(p.Parts)
	}
	return true
}

// builtinArrays are arrays in every shell.
var builtinArrays = words{
	"BASH_ALIASES", "BASH_ARGC", "BASH_ARGV", "BASH_CMDS", "BASH_LINENO", "BASH_REMATCH", "BASH_SOURCE", "BASH_VERSINFO",
	"COMPREPLY", "COMP_WORDS", "COPROC", "DIRSTACK", "FUNCNAME", "GROUPS", "MAPFILE", "PIPESTATUS",
}

// arrayMakers finds commands that make arrays of variables named elsewhere.
var arrayMakers = newPattern(`\b(mapfile|readarray)\b|\bread\b[^;|&\n]*-\w*a|\b(declare|typeset|local|readonly|export)\b[^;|&\n]*\s-\w*[aA]`)

// mayBeArray reports whether anything in the script could make an array of a
// variable. An assignment stands in the text as it is; a command is looked for
// without quotes, so that none hides a word.
func (s *script) mayBeArray(name string) bool {
	for _, mark := range []string{"=(", "+=(", "["} {
		if strings.Contains(s.src.text, name+mark) {
			return true
		}
	}
	bare := strings.NewReplacer(`'`, "", `"`, "", `\`, "", "$", "").Replace(s.src.text)
	return builtinArrays.has(name) || !s.fresh || arrayMakers.MatchString(bare)
}
