package mcpserver

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// cost is what a text takes in JSON, which is how structured content reaches a
// model.
func cost(s string) int {
	n := 0
	for _, r := range s {
		n += runeCost(r)
	}
	return n
}

func runeCost(r rune) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t':
		return 2
	case r < ' ' || r == '\u2028' || r == '\u2029':
		return 6
	}
	return utf8.RuneLen(r)
}

// fit cuts texts so that they cost no more than most together, and reports whether
// it had to. What one leaves of its share is for the others; a text that is cut
// keeps its head and its tail. All become UTF-8.
func fit(most int, texts ...*string) bool {
	for _, t := range texts {
		*t = strings.ToValidUTF8(*t, "\uFFFD")
	}
	texts = slices.Clone(texts)
	slices.SortStableFunc(texts, func(a, b *string) int { return cost(*a) - cost(*b) })
	cut := false
	for i, t := range texts {
		share := max(most/(len(texts)-i), 0)
		if cost(*t) > share {
			*t, cut = headAndTail(*t, share), true
		}
		most -= cost(*t)
	}
	return cut
}

// gap is what a note about bytes that were cut costs at most.
const gap = 48

// headAndTail is what fits of a text that does not, with a note of how much is
// missing in between.
func headAndTail(s string, most int) string {
	if most <= gap {
		return ""
	}
	half := (most - gap) / 2
	head := len(upTo(s, half))
	tail := len(s)
	for left := half; tail > head; {
		r, n := utf8.DecodeLastRuneInString(s[:tail])
		if left -= runeCost(r); left < 0 {
			break
		}
		tail -= n
	}
	return fmt.Sprintf("%s\n[… %d bytes are cut here …]\n%s", s[:head], tail-head, s[tail:])
}

// upTo is the beginning of a text that costs no more than most.
func upTo(s string, most int) string {
	for i, r := range s {
		if most -= runeCost(r); most < 0 {
			return s[:i]
		}
	}
	return s
}

// within returns how many of a list fit, by what each takes in JSON.
func within[T any](most int, list []T) int {
	for i, v := range list {
		if most -= len(inJSON(v)) + 1; most < 0 {
			return i
		}
	}
	return len(list)
}

// lines joins what is not empty, each on lines of its own.
func lines(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		if p == "" {
			continue
		}
		if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		b.WriteString(p)
	}
	return strings.TrimRight(b.String(), "\n")
}
