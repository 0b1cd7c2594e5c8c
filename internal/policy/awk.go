package policy

import "strings"

var (
	awkSeparator = newPattern(`^-F`)
	awkAttached  = newPattern(`^-v[A-Za-z_][A-Za-z0-9_]*=`)
	awkVariable  = newPattern(`^[A-Za-z_][A-Za-z0-9_]*=`)
)

// awkRule reads the options of awk, then its program. Awk stops looking for
// options at the program, so what follows is data.
func awkRule(j *judge, name arg, args []arg, _ input) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		next := i+1 < len(args)
		switch {
		case a.literal && a.text == "--":
			if next {
				j.awkProgram(args[i+1])
			}
			return
		case a.literal && a.text == "-F" && next && args[i+1].single:
			i++
		case a.text != "-F" && attached(a, awkSeparator), attached(a, awkAttached):
		case a.literal && a.text == "-v" && next && args[i+1].single && awkVariable.MatchString(args[i+1].text):
			i++
		case strings.HasPrefix(a.text, "-"):
			j.refuse(a.at, RuleOption, a.word, "%s %s is not looked into; use -F and -v name=value, and write the program on the command line", name.text, a.text)
			return
		default:
			j.awkProgram(a)
			return
		}
	}
}

func (j *judge) awkProgram(a arg) {
	if !a.mold || !a.literal && a.text == "" { // a number in front could be -5
		j.refuse(a.at, RuleAwk, a.word, "an awk program must be written out, but for numbers in double quotes; hand values over with -v name=\"…\"")
		return
	}
	l := awkLexer{text: a.code}
	if reason := l.check(); reason != "" {
		j.refuse(a.at, RuleAwk, a.word, "%s", reason)
	}
}

const (
	awkRuns    = "this awk program runs commands or loads code: system(), |, |& and @ are refused"
	awkUnclear = "this awk program cannot be read with certainty; make it simpler"
)

// awkLexer splits a program into tokens, so that a | in a pattern or a text is
// not taken for a pipe, and none is overlooked.
type awkLexer struct {
	text  string
	at    int
	prev  awkToken
	word  string // the token before, if it is a name
	heads []bool // for each open (: it belongs to if, while, for or switch
}

// awkToken is the kind of the token before, which says what a / means.
type awkToken int

const (
	awkOperator awkToken = iota // or nothing: a / starts a pattern
	awkOperand                  // a / divides
	awkEither                   // nobody knows
)

// awkWords are the keywords after which a value, and so a pattern, can stand.
var awkWords = words{"print", "printf", "return", "else", "do", "exit", "in", "case"}

// awkCommands run something or load something.
var awkCommands = words{"system", "extension"}

// awkUnsure are words after which a / may divide or not.
var awkUnsure = words{"getline", "length", "next", "nextfile", "break", "continue", "delete", "BEGIN", "END", "BEGINFILE", "ENDFILE", "function", "func", "if", "while", "for", "switch", "default"}

// check returns why a program is refused, or "".
func (l *awkLexer) check() string {
	if strings.Contains(l.text, "/inet") {
		return "this awk program opens network connections"
	}
	for l.at < len(l.text) {
		if reason := l.token(); reason != "" {
			return reason
		}
	}
	return ""
}

func (l *awkLexer) token() string {
	c := l.text[l.at]
	if c == ' ' || c == '\t' {
		l.at++
		return ""
	}
	if !letter(c) && strings.IndexByte("(\\\n#", c) < 0 {
		l.word = ""
	}
	switch {
	case c == '\\':
		return l.continuation()
	case c == '#':
		return l.comment()
	case c == '"':
		return l.str()
	case c == '/' && l.prev == awkEither:
		return awkUnclear
	case c == '/' && l.prev == awkOperator:
		return l.pattern()
	case c == hole:
		return l.hole()
	case c == '@' || c == '|' && !strings.HasPrefix(l.text[l.at:], "||"):
		return awkRuns
	case letter(c):
		return l.name()
	case c >= '0' && c <= '9' || c == '.':
		return l.number()
	}
	return l.operator(c)
}

var awkNumber = newPattern(`^[0-9]*\.?[0-9]*([eE][+-]?[0-9]+)?`)

// number takes a number. Awks differ on how much of a word behind it belongs to
// it: gawk takes the e of 1esystem.
func (l *awkLexer) number() string {
	l.at += len(awkNumber.FindString(l.text[l.at:]))
	if l.at < len(l.text) && letter(l.text[l.at]) {
		return awkUnclear
	}
	l.prev = awkOperand
	return ""
}

func letter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (l *awkLexer) operator(c byte) string {
	two := l.text[l.at:min(l.at+2, len(l.text))]
	switch {
	case c >= 0x80 || c < ' ' && c != '\n' || c == '`' || c == '\'':
		return awkUnclear
	case two == "||":
		l.at += 2
		l.prev = awkOperator
		return ""
	case two == "++" || two == "--":
		l.at += 2
		l.prev = awkEither
		return ""
	case c == '(':
		l.heads = append(l.heads, l.word == "if" || l.word == "while" || l.word == "for" || l.word == "switch")
		l.prev, l.word = awkOperator, ""
	case c == ')':
		l.prev = awkOperand
		if n := len(l.heads); n > 0 {
			if l.heads[n-1] {
				l.prev = awkEither // a statement follows, which may be a pattern
			}
			l.heads = l.heads[:n-1]
		}
	case c == ']':
		l.prev = awkOperand
	case c == '$':
		l.prev = awkEither
	default:
		l.prev = awkOperator
	}
	l.at++
	return ""
}

func (l *awkLexer) name() string {
	start := l.at
	for l.at < len(l.text) && (letter(l.text[l.at]) || l.text[l.at] >= '0' && l.text[l.at] <= '9') {
		l.at++
	}
	word := l.text[start:l.at]
	l.word = word
	switch {
	case awkCommands.has(word):
		return awkRuns
	case awkWords.has(word):
		l.prev = awkOperator
	case awkUnsure.has(word):
		l.prev = awkEither
	default:
		l.prev = awkOperand
	}
	return ""
}

// continuation takes a backslash at the end of a line, which changes nothing.
func (l *awkLexer) continuation() string {
	if !strings.HasPrefix(l.text[l.at:], "\\\n") {
		return awkUnclear
	}
	l.at += 2
	return ""
}

// comment leaves the newline, which ends a statement.
func (l *awkLexer) comment() string {
	line, _, _ := strings.Cut(l.text[l.at:], "\n")
	l.at += len(line)
	if strings.HasSuffix(line, `\`) {
		return awkUnclear
	}
	return ""
}

func (l *awkLexer) str() string {
	for i := l.at + 1; i < len(l.text); i++ {
		switch l.text[i] {
		case '"':
			l.at = i + 1
			l.prev = awkOperand
			return ""
		case '\n':
			return awkUnclear
		case '\\':
			if i++; i < len(l.text) && (l.text[i] == '\n' || l.text[i] == hole) {
				return awkUnclear
			}
		}
	}
	return awkUnclear
}

// pattern takes /…/. Awks differ on a / between brackets.
func (l *awkLexer) pattern() string {
	open := false
	for i := l.at + 1; i < len(l.text); i++ {
		switch l.text[i] {
		case '/':
			if open {
				return awkUnclear
			}
			l.at = i + 1
			l.prev = awkOperand
			return ""
		case '\n', hole:
			return awkUnclear
		case '\\':
			if i++; i < len(l.text) && (l.text[i] == '\n' || l.text[i] == hole) {
				return awkUnclear
			}
		case '[':
			open = true
		case ']':
			open = false
		}
	}
	return awkUnclear
}

// hole takes a number that is not known. It may be empty, so it must neither
// split nor join what stands around it.
func (l *awkLexer) hole() string {
	const around = " \t\n()<>=!,;{}[]&|+*%$"
	before := l.at == 0 || strings.IndexByte(around, l.text[l.at-1]) >= 0
	l.at++
	after := l.at == len(l.text) || strings.IndexByte(around, l.text[l.at]) >= 0
	if !before || !after {
		return awkUnclear
	}
	l.prev = awkEither
	return ""
}
