package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// literal returns the one field that a word always expands to, or false and the
// part of it that is literal and comes first.
func literal(w *syntax.Word) (string, bool) {
	if w == nil {
		return "", false
	}
	var b strings.Builder
	for i, part := range w.Parts {
		text, ok := literalPart(part, i == 0)
		b.WriteString(text)
		if !ok {
			return b.String(), false
		}
	}
	return b.String(), len(w.Parts) > 0
}

func literalPart(part syntax.WordPart, first bool) (string, bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		return unquotedText(p.Value, first)
	case *syntax.SglQuoted:
		return p.Value, !p.Dollar || !strings.Contains(p.Value, `\`)
	case *syntax.DblQuoted:
		var b strings.Builder
		for _, inner := range p.Parts {
			l, is := inner.(*syntax.Lit)
			if !is {
				return b.String(), false
			}
			b.WriteString(quotedText(l.Value))
		}
		return b.String(), !p.Dollar
	}
	return "", false
}

// unquotedText takes the escapes out of text that stands without quotes. Text
// that expands to file names, to a home or to several words is not literal.
func unquotedText(v string, first bool) (string, bool) {
	if first && strings.HasPrefix(v, "~") {
		return "", false
	}
	var b strings.Builder
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c == '\\':
			if i++; i == len(v) {
				return b.String(), false // at the end of all: bash keeps it
			}
			if v[i] != '\n' {
				b.WriteByte(v[i])
			}
		case c == '*', c == '?', c == '[' && v != "[", c == '{' && (strings.Contains(v[i:], ",") || strings.Contains(v[i:], "..")):
			return b.String(), false
		default:
			b.WriteByte(c)
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
