package policy

import "strings"

var (
	sedFlags    = newPattern(`^-[nErsuzb]+$|^-[nErsuzb]*i[^;]*$|^--(quiet|silent|regexp-extended|separate|unbuffered|null-data|zero-terminated|posix|sandbox|debug|follow-symlinks|version|help|in-place|in-place=.*|line-length=[0-9]+)$`)
	sedScript   = newPattern(`^-[nErsuzb]*e$|^--expression$`)
	sedAttached = newPattern(`^(-[nErsuzb]*e|--expression=)`)
	sedStops    = newPattern(`^-[0-9]`) // no sed knows such an option: it runs nothing
	sedValue    = newPattern(`^-[nErsuzb]*l$|^--line-length$`)
)

// sedRule reads the options of sed and then its script, which -e can bring in
// parts: they are lines of one script.
func sedRule(j *judge, name arg, args []arg, _ input) {
	var scripts, operands, unsure []arg
	options := true
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !options || a.literal && !dashed(a) || a.literal && a.text == "-":
			operands = append(operands, a)
		case a.literal && a.text == "--":
			options = false
		case a.literal && sedScript.MatchString(a.text) && i+1 < len(args):
			i++
			scripts = append(scripts, args[i])
		case a.literal && sedValue.MatchString(a.text) && i+1 < len(args) && args[i+1].literal:
			i++
		case a.literal && sedFlags.MatchString(a.text):
		case a.literal && sedStops.MatchString(a.text):
			return // what "${n}p" becomes when n is negative
		case attached(a, sedAttached):
			if a.mold {
				a.code = a.code[len(sedAttached.FindString(a.text)):]
			}
			scripts = append(scripts, a)
		case a.literal:
			j.refuse(a.at, RuleOption, a.word, "%s %s is not looked into; give the script on the command line", name.text, a.text)
			return
		case a.operand:
			operands = append(operands, a)
		default:
			if len(operands) == 0 && len(unsure) == 0 {
				operands = append(operands, a) // it may be the script
			}
			unsure = append(unsure, a)
		}
	}
	if len(scripts) == 0 && len(operands) > 0 {
		scripts = operands[:1]
		if len(unsure) > 0 && unsure[0] == operands[0] {
			unsure = unsure[1:]
		}
	}
	if len(unsure) > 0 {
		j.refuse(unsure[0].at, RuleArgument, unsure[0].word, "%s", couldBeOption)
		return
	}
	j.sedScripts(scripts)
}

func (j *judge) sedScripts(scripts []arg) {
	var lines []string
	for _, a := range scripts {
		if !a.mold {
			j.refuse(a.at, RuleSed, a.word, "a sed script must be written out, but for numbers in double quotes; this one is only known when it runs")
			return
		}
		lines = append(lines, a.code)
	}
	if len(lines) == 0 {
		return
	}
	p := sedParser{rest: strings.Join(lines, "\n")}
	if reason := p.script(); reason != "" {
		j.refuse(scripts[0].at, RuleSed, scripts[0].word, "%s", reason)
	}
}

// sedParser reads a script as GNU sed does. What it does not know it refuses,
// and so it does what other seds read differently.
type sedParser struct{ rest string }

const (
	sedRuns    = "the e command of sed, and the e flag of s, run a program"
	sedUnclear = "this sed script cannot be read with certainty; make it simpler"
)

// script returns why a script is refused, or "".
func (p *sedParser) script() string {
	for {
		p.skip(" \t\n;")
		if p.rest == "" {
			return ""
		}
		if p.rest[0] == '#' {
			p.line()
			continue
		}
		if reason := p.address(); reason != "" {
			return reason
		}
		if reason := p.command(); reason != "" {
			return reason
		}
	}
}

func (p *sedParser) skip(chars string) {
	p.rest = strings.TrimLeft(p.rest, chars)
}

// line takes the rest of the line.
func (p *sedParser) line() string {
	line, rest, _ := strings.Cut(p.rest, "\n")
	p.rest = rest
	return line
}

// address takes what may stand before a command: up to two addresses and !.
func (p *sedParser) address() string {
	for range 2 {
		if reason := p.oneAddress(); reason != "" {
			return reason
		}
		p.skip(" \t")
		if !strings.HasPrefix(p.rest, ",") {
			break
		}
		p.rest = p.rest[1:]
		p.skip(" \t+~")
	}
	p.skip(" \t!")
	return ""
}

const sedNumber = "0123456789~" + string(hole)

func (p *sedParser) oneAddress() string {
	switch {
	case p.rest == "":
	case p.rest[0] == '$':
		p.rest = p.rest[1:]
	case p.rest[0] == '/':
		return p.regexAddress('/', 1)
	case p.rest[0] == '\\' && len(p.rest) > 1:
		return p.regexAddress(p.rest[1], 2)
	default:
		p.skip(sedNumber + " ")
	}
	return ""
}

func (p *sedParser) regexAddress(mark byte, skip int) string {
	p.rest = p.rest[skip:]
	if !p.until(mark, true) {
		return sedUnclear
	}
	p.skip("IM")
	return ""
}

// until takes a pattern or a replacement up to its mark. A newline ends it in
// GNU sed, and other seds look for the mark outside of brackets only.
func (p *sedParser) until(mark byte, pattern bool) bool {
	if strings.IndexByte("/|,#@:;!%_^+=~", mark) < 0 {
		return false
	}
	open := false
	for i := 0; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == mark:
			p.rest = p.rest[i+1:]
			return !open
		case c == '\n':
			return false
		case c == '\\':
			if i++; i == len(p.rest) || p.rest[i] == hole || p.rest[i] == '\n' && pattern {
				return false
			}
		case c == '[' && pattern:
			open = true
		case c == ']' && pattern:
			open = false
		}
	}
	return false
}

// command takes one command with its arguments.
func (p *sedParser) command() string {
	if p.rest == "" {
		return sedUnclear
	}
	c := p.rest[0]
	p.rest = p.rest[1:]
	switch c {
	case 'e':
		return sedRuns
	case '{':
		return ""
	case '}', '=', 'd', 'D', 'F', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z':
		return p.end()
	case 'q', 'Q', 'l', 'L':
		p.skip(" " + sedNumber)
		return p.end()
	case ':', 'b', 't', 'T':
		return p.label(c == ':')
	case 'r', 'R', 'w', 'W':
		p.line()
		return ""
	case 'a', 'i', 'c':
		return p.text()
	case 's':
		return p.substitute()
	case 'y':
		return p.transliterate()
	}
	return sedUnclear
}

// end wants the end of a command.
func (p *sedParser) end() string {
	p.skip(" \t")
	if p.rest == "" || strings.IndexByte("\n;}#", p.rest[0]) >= 0 {
		return ""
	}
	return sedUnclear
}

var sedLabel = newPattern(`^[A-Za-z0-9_]*`)

func (p *sedParser) label(needed bool) string {
	p.skip(" \t")
	label := sedLabel.FindString(p.rest)
	if label == "" && needed {
		return sedUnclear
	}
	p.rest = p.rest[len(label):]
	return p.end()
}

// text takes the lines that a, i and c put out. A line that ends in a backslash
// goes on; seds count several backslashes differently.
func (p *sedParser) text() string {
	for first := true; ; first = false {
		line := p.line()
		if first && strings.TrimLeft(line, " \t") == `\` {
			continue
		}
		if strings.HasSuffix(line, `\\`) {
			return sedUnclear
		}
		if !strings.HasSuffix(line, `\`) || p.rest == "" {
			return ""
		}
	}
}

const sedSubstituteFlags = "gpiImM0123456789" + string(hole)

func (p *sedParser) substitute() string {
	if p.rest == "" {
		return sedUnclear
	}
	mark := p.rest[0]
	p.rest = p.rest[1:]
	if !p.until(mark, true) || !p.until(mark, false) {
		return sedUnclear
	}
	for p.rest != "" && p.rest[0] != '\n' {
		switch c := p.rest[0]; {
		case c == 'e':
			return sedRuns
		case c == 'w':
			p.line()
			return ""
		case strings.IndexByte(sedSubstituteFlags, c) >= 0:
			p.rest = p.rest[1:]
		default:
			return p.end()
		}
	}
	return ""
}

func (p *sedParser) transliterate() string {
	if p.rest == "" {
		return sedUnclear
	}
	mark := p.rest[0]
	p.rest = p.rest[1:]
	for range 2 {
		if !p.until(mark, false) {
			return sedUnclear
		}
	}
	return p.end()
}
