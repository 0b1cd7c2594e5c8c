package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// arg is one argument of a command, as far as it is known before it runs.
type arg struct {
	at   place
	word string // as written

	text    string // the value, if literal; else the part of it that surely comes first
	literal bool
	single  bool // exactly one field
	operand bool // no field of it can be taken for an option or an operator
	number  bool // nothing but numbers

	// code is the value with a hole for each number in it, if mold is set: all
	// but some numbers is known.
	code string
	mold bool
}

// hole stands for a number, possibly negative or empty, in arg.code.
const hole = '\x01'

// plain is the argument that an argv has.
func plain(text string) arg {
	return arg{
		word: text, text: text, literal: true, single: true,
		operand: text == "" || operandStart(text[0]),
		code:    text, mold: !strings.ContainsRune(text, hole),
	}
}

// plainAt is the argument that a word with one value makes.
func plainAt(text, word string, at place) arg {
	a := plain(text)
	a.word, a.at = word, at
	return a
}

// unknown is an argument of which nothing is known but that it may be several.
func unknown(word string, at place) arg { return arg{at: at, word: word} }

// argument returns what is known of a word.
func (s *script) argument(w *syntax.Word) arg {
	at, word := s.src.at(offset(w)), s.text(w)
	if text, ok := literal(w); ok {
		return plainAt(text, word, at)
	}
	a := arg{at: at, word: word, text: prefix(w), single: single(w), operand: s.operandWord(w), number: s.facts.word(w)&number != 0}
	a.code, a.mold = s.mold(w)
	return a
}

// prefix returns the part of a word's value that is literal and comes first.
func prefix(w *syntax.Word) string {
	var b strings.Builder
	for i, part := range w.Parts {
		if d, is := part.(*syntax.DblQuoted); is && !d.Dollar {
			for _, inner := range d.Parts {
				l, is := inner.(*syntax.Lit)
				if !is {
					return b.String()
				}
				b.WriteString(quotedText(l.Value))
			}
			continue
		}
		text, ok := literalPart(part, i == 0)
		if !ok {
			return b.String()
		}
		b.WriteString(text)
	}
	return b.String()
}

// single reports whether a word always expands to exactly one field: nothing in
// it is split, and it holds no pattern and no list.
func single(w *syntax.Word) bool {
	for i, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				if e, is := inner.(*syntax.ParamExp); is && many(e) {
					return false
				}
			}
		case *syntax.ArithmExp, *syntax.ProcSubst:
		default:
			if _, ok := literalPart(part, i == 0); !ok {
				return false
			}
		}
	}
	return len(w.Parts) > 0
}

// many reports whether an expansion in double quotes makes many fields, or none.
func many(p *syntax.ParamExp) bool {
	if p.Param == nil || p.Param.Value == "@" || p.Names != 0 || p.Index != nil && all(p.Index) && !p.Length {
		return true
	}
	return p.Exp != nil && p.Exp.Word != nil && slices.ContainsFunc(p.Exp.Word.Parts, lists) // "${x:-$@}"
}

// mold returns the value of a word with holes in place of numbers. Only what
// stands in double quotes can be a hole: elsewhere it would be split.
func (s *script) mold(w *syntax.Word) (string, bool) {
	var b strings.Builder
	holes := 0
	for i, part := range w.Parts {
		d, is := part.(*syntax.DblQuoted)
		if !is || d.Dollar {
			text, ok := literalPart(part, i == 0)
			if !ok {
				return "", false
			}
			b.WriteString(text)
			continue
		}
		for _, inner := range d.Parts {
			if l, is := inner.(*syntax.Lit); is {
				b.WriteString(quotedText(l.Value))
				continue
			}
			e, is := inner.(*syntax.ParamExp)
			if is && many(e) || s.facts.part(inner)&number == 0 {
				return "", false
			}
			b.WriteByte(hole)
			holes++
		}
	}
	return b.String(), strings.Count(b.String(), string(hole)) == holes
}

// attached reports whether an argument is an option with its value in the same
// word. Some of the value must be written out: if it were empty, the program
// would take the next argument for it.
func attached(a arg, option *pattern) bool {
	match := option.FindString(a.text)
	return match != "" && a.single && (a.literal || len(a.text) > len(match) || strings.HasSuffix(match, "="))
}

// operandWord reports whether every field that a word expands to starts like a
// file name. What is not quoted is split, unless it is a number.
func (s *script) operandWord(w *syntax.Word) bool {
	if s.facts.word(w)&dashless == 0 {
		return false
	}
	for _, part := range w.Parts {
		switch part.(type) {
		case *syntax.DblQuoted, *syntax.Lit, *syntax.SglQuoted, *syntax.ProcSubst, *syntax.ArithmExp:
		default:
			if s.facts.part(part)&number == 0 {
				return false
			}
		}
	}
	return true
}

// operandStart reports whether c can start neither an option nor an operator
// of find or test.
func operandStart(c byte) bool { return strings.IndexByte("-()!,", c) < 0 }
