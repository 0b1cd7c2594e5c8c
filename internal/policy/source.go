package policy

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// Bounds on what is judged. Linux takes no line longer than 128 KiB; the parser
// needs up to 4 KiB of stack for each level, so nesting is bounded before it
// runs, and the tree's depth before we walk it.
const (
	maxSource    = 64 << 10
	maxBrackets  = 200
	maxTreeDepth = 400
	maxNested    = 4 // shells within shells
	maxOffset    = 1 << 30
)

// source is the text of a script and where its words are.
type source struct {
	text  string
	fixed *place // of a script inside a word: all its words are there
	lines []int  // where each line starts
}

func newSource(text string, fixed *place) source {
	lines := []int{0}
	for i := range len(text) {
		if text[i] == '\n' {
			lines = append(lines, i+1)
		}
	}
	return source{text: text, fixed: fixed, lines: lines}
}

// at returns the place of a byte. It counts itself, since the parser gives up
// on long lines.
func (s source) at(offset uint) place {
	if s.fixed != nil {
		return *s.fixed
	}
	i := int(min(offset, maxOffset))
	line, exact := slices.BinarySearch(s.lines, i)
	if !exact {
		line--
	}
	return place{line: line + 1, column: i - s.lines[line] + 1}
}

// between returns the text from one byte to another.
func (s source) between(from, to uint) string {
	to = min(to, uint(len(s.text)))
	return s.text[min(from, to):to]
}

// checkText refuses what must not reach the parser.
func (j *judge) checkText(s source) bool {
	if len(s.text) > maxSource {
		j.refuse(s.at(0), RuleSize, "", "the command is %d bytes long and the most is %d; write the data to a file first", len(s.text), maxSource)
		return false
	}
	if offset := odd(s.text); offset >= 0 {
		j.refuse(s.at(uint(offset)), RuleAmbiguous, "", "the command holds a byte that is no text (%q); write it as an escape", s.text[offset])
		return false
	}
	if offset := tooDeep(s.text); offset >= 0 {
		j.refuse(s.at(uint(offset)), RuleDepth, "", "the command opens more than %d brackets without closing them", maxBrackets)
		return false
	}
	return true
}

// odd returns the offset of the first byte that is neither text nor a tab or
// newline. A carriage return is a blank to the parser and a letter to bash.
func odd(text string) int {
	for i, r := range text {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return i
		}
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return i
			}
		}
	}
	return -1
}

// tooDeep returns where the nesting passes the bound, or −1. It knows nothing
// of quotes; with the bound on size that is enough to keep the parser's stack
// small.
func tooDeep(text string) int {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth = max(depth-1, 0)
		}
		if depth > maxBrackets {
			return i
		}
	}
	return -1
}

// span is a range of bytes.
type span struct{ from, to uint }

// checkContinuations refuses a line that goes on in the middle of a word: bash
// joins it before it looks for $( and the like, the parser after. Where quotes
// take away the meaning of a backslash it may stand anywhere.
func (j *judge) checkContinuations(s source, quoted []span) {
	slices.SortFunc(quoted, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for i := 1; i < len(s.text); i++ {
		if s.text[i] != '\n' || s.text[i-1] != '\\' || escaped(s.text, i-1) || within(quoted, uint(i)) {
			continue
		}
		if i >= 2 && s.text[i-2] != ' ' && s.text[i-2] != '\t' && s.text[i-2] != '\n' {
			j.refuse(s.at(uint(i-1)), RuleAmbiguous, `\`, "a line that goes on must be broken after a blank, not inside a word")
		}
	}
}

// escaped reports whether an odd number of backslashes stands before i.
func escaped(text string, i int) bool {
	n := 0
	for i > 0 && text[i-1] == '\\' {
		n++
		i--
	}
	return n%2 == 1
}

// within reports whether a byte is in one of the spans, which are in order.
func within(spans []span, offset uint) bool {
	i, exact := slices.BinarySearchFunc(spans, offset, func(s span, at uint) int { return cmp.Compare(s.from, at) })
	return exact || i > 0 && offset < spans[i-1].to
}
