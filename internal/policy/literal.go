package policy

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// literal returns the one field that a word always expands to, or false.
func literal(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for i, part := range w.Parts {
		text, ok := literalPart(part, i == 0)
		if !ok {
			return "", false
		}
		b.WriteString(text)
	}
	return b.String(), len(w.Parts) > 0
}

// value is literal for those to whom "" and unknown are the same.
func value(w *syntax.Word) string {
	text, _ := literal(w)
	return text
}

func literalPart(part syntax.WordPart, first bool) (string, bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		return unquotedText(p.Value, first)
	case *syntax.SglQuoted:
		if p.Dollar {
			return ansiText(p.Value)
		}
		return p.Value, true
	case *syntax.DblQuoted:
		if p.Dollar {
			return "", false
		}
		var b strings.Builder
		for _, inner := range p.Parts {
			l, is := inner.(*syntax.Lit)
			if !is {
				return "", false
			}
			b.WriteString(quotedText(l.Value))
		}
		return b.String(), true
	}
	return "", false
}

// noBraces is text with {} that bash leaves alone.
var noBraces = newPattern(`^[^]~{},.*?[\\]*\{\}[^]{},.*?[\\]*$`)

// unquotedText takes the escapes out of text that stands without quotes. Text
// that expands to file names, to a home or to several words is not literal.
func unquotedText(v string, first bool) (string, bool) {
	if first && strings.HasPrefix(v, "~") {
		return "", false
	}
	if noBraces.MatchString(v) {
		return v, true
	}
	var b strings.Builder
	for i := 0; i < len(v); i++ {
		switch v[i] {
		case '\\':
			if i++; i == len(v) {
				return "", false // at the end of all: bash keeps it
			}
			b.WriteByte(v[i])
		case '*', '?', '[', '{':
			if v != "[" {
				return "", false
			}
			b.WriteByte('[')
		default:
			b.WriteByte(v[i])
		}
	}
	return b.String(), true
}

// quotedText takes the escapes out of text in double quotes.
func quotedText(v string) string {
	var b strings.Builder
	for i := 0; i < len(v); i++ {
		if v[i] == '\\' && i+1 < len(v) && strings.IndexByte("$`\"\\\n", v[i+1]) >= 0 {
			i++
			if v[i] == '\n' {
				continue
			}
		}
		b.WriteByte(v[i])
	}
	return b.String()
}

var ansiEscapes = map[byte]byte{
	'a': 7, 'b': 8, 'e': 27, 'E': 27, 'f': 12, 'n': 10, 'r': 13, 't': 9, 'v': 11,
	'\\': '\\', '\'': '\'', '"': '"', '?': '?',
}

// ansiText takes the escapes out of $'…', or reports false for what bash
// versions disagree on.
func ansiText(v string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(v); i++ {
		if v[i] != '\\' {
			b.WriteByte(v[i])
			continue
		}
		if i++; i == len(v) {
			return "", false
		}
		if c, ok := ansiEscapes[v[i]]; ok {
			b.WriteByte(c)
			continue
		}
		text, used := ansiNumber(v[i:])
		if used == 0 {
			return "", false
		}
		b.WriteString(text)
		i += used - 1
	}
	return b.String(), true
}

// ansiNumber reads \nnn, \xHH, \uHHHH and \UHHHHHHHH without the backslash.
func ansiNumber(v string) (text string, used int) {
	most, base, skip := 3, 8, 0
	switch v[0] {
	case 'x':
		most, base, skip = 2, 16, 1
	case 'u':
		most, base, skip = 4, 16, 1
	case 'U':
		most, base, skip = 8, 16, 1
	}
	end := skip
	for end < len(v) && end-skip < most {
		if _, err := strconv.ParseUint(v[end:end+1], base, 8); err != nil {
			break
		}
		end++
	}
	if most <= 3 {
		n, err := strconv.ParseUint(v[skip:end], base, 8)
		if err != nil || n == 0 {
			return "", 0
		}
		return string([]byte{byte(n & 0xff)}), end
	}
	n, err := strconv.ParseInt(v[skip:end], base, 32)
	if err != nil || n == 0 || n > utf8.MaxRune {
		return "", 0
	}
	return string(rune(n)), end
}
