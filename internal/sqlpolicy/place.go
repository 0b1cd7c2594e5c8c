package sqlpolicy

import "strings"

// place is the line and the column in bytes of an offset, both from 1.
func place(sql string, at int) (line, column int) {
	before := sql[:at]
	return strings.Count(before, "\n") + 1, at - strings.LastIndexByte(before, '\n')
}

// find returns the offset of a word: where the look is now, or behind it, or
// anywhere. The parser does not know every place, and those behind a wide space are
// off by its width. Without the word it is where the look is now, or -1.
func (j *judge) find(about string) int {
	if about == "" {
		return j.at
	}
	if j.tokens == nil {
		j.tokens = tokensOf(j.sql)
	}
	for _, from := range []int{j.at, 0} {
		for i, t := range j.tokens {
			if t.at >= from && spells(j.tokens[i:], about) {
				return t.at
			}
		}
	}
	return j.at
}

// written returns the first of the words that is in the text.
func (j *judge) written(about ...string) string {
	for _, w := range about {
		for _, t := range tokensOf(j.sql) {
			if same(t.text, w) {
				return w
			}
		}
	}
	return about[0]
}

// spells reports whether the tokens begin with the word, which may have dots in it.
func spells(tokens []token, about string) bool {
	if len(tokens) == 0 {
		return false
	}
	if same(tokens[0].text, about) {
		return true
	}
	rest, ok := strings.CutPrefix(lower(about), lower(tokens[0].text)+".")
	return ok && len(tokens) > 2 && tokens[0].text != "" && tokens[1].text == "." && spells(tokens[2:], rest)
}
