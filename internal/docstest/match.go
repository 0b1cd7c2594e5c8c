package docstest

import "strings"

// Any stands for any text within a line, and alone for any number of lines.
const Any = "…"

// Match reports whether got is what an output block describes.
func Match(want, got string) bool {
	return matchLines(fields(want), fields(got))
}

// fields returns the lines of a text with white space made even, without the
// empty lines at its end.
func fields(text string) []string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.Join(strings.Fields(l), " ")
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func matchLines(want, got []string) bool {
	return match(len(want), len(got), func(i int) bool { return want[i] == Any }, func(i, j int) bool {
		return matchLine([]rune(want[i]), []rune(got[j]))
	})
}

func matchLine(want, got []rune) bool {
	return match(len(want), len(got), func(i int) bool { return string(want[i]) == Any }, func(i, j int) bool {
		return want[i] == got[j]
	})
}

// match compares two sequences, of which the first may hold wild cards. It goes
// back to the last wild card only, which is enough and keeps it quick.
func match(want, got int, wild func(i int) bool, equal func(i, j int) bool) bool {
	i, j := 0, 0
	star, mark := -1, 0
	for j < got {
		switch {
		case i < want && wild(i):
			star, mark = i, j
			i++
		case i < want && equal(i, j):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < want && wild(i) {
		i++
	}
	return i == want
}
