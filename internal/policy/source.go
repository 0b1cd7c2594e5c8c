package policy

import "slices"

// Bounds on what is judged. Linux takes no line longer than 128 KiB; the parser
// needs up to 4 KiB of stack for each level, so nesting is bounded before it
// runs, and the tree's depth before we walk it.
const (
	maxSource    = 64 << 10
	maxBrackets  = 200
	maxTreeDepth = 400
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

// checkText refuses what must not reach the parser.
func (j *judge) checkText(s source) bool {
	if len(s.text) > maxSource {
		j.refuse(s.at(0), RuleSize, "", "the command is %d bytes long and the most is %d; write the data to a file first", len(s.text), maxSource)
		return false
	}
	if offset := tooDeep(s.text); offset >= 0 {
		j.refuse(s.at(uint(offset)), RuleDepth, "", "the command opens more than %d brackets without closing them", maxBrackets)
		return false
	}
	return true
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
