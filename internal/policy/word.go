package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word judges what happens when a word is expanded.
func (s *script) word(w *syntax.Word) {
	if w != nil {
		s.parts(w.Parts, false)
	}
}

// parts judges the parts of a word, or of what is in double quotes or in a
// here-document, which is read the same way.
func (s *script) parts(parts []syntax.WordPart, quoted bool) {
	for i, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			s.checkHidden(p, quoted, i == len(parts)-1)
		case *syntax.SglQuoted:
		case *syntax.DblQuoted:
			if p.Dollar {
				s.reject(p, RuleAmbiguous, `text in $"…" is translated before it is used; write "…"`)
			}
			s.parts(p.Parts, true)
		case *syntax.ParamExp:
			s.param(p, quoted)
		case *syntax.CmdSubst:
			s.substitution(p)
		case *syntax.ArithmExp:
			if p.Bracket || p.Unsigned {
				s.reject(p, RuleArithmetic, "write $(( )) instead")
			}
			s.arithmetic(p.X)
		case *syntax.ProcSubst:
			s.stmts(p.Stmts)
		default: // extended globs: without extglob, bash reads !( ) as a subshell
			s.reject(p, RuleAmbiguous, "extended patterns are not looked into")
		}
	}
}

// checkHidden refuses a literal in which bash could see more than the parser
// did: a substitution that is not escaped.
func (s *script) checkHidden(l *syntax.Lit, quoted, last bool) {
	v := l.Value
	for i := 0; i < len(v); i++ {
		bad := false
		switch v[i] {
		case '\\':
			i++
		case '`':
			bad = true
		case '$':
			next := byte(0)
			if i+1 < len(v) {
				next = v[i+1]
			}
			bad = next == 0 && !last || starts(next) || !quoted && (next == '\'' || next == '"')
		case '<', '>':
			bad = !quoted && i+1 < len(v) && v[i+1] == '('
		}
		if bad {
			s.reject(l, RuleAmbiguous, "shells disagree on whether this is text or an expansion; quote it with single quotes")
			return
		}
	}
}

// starts reports whether c after $ starts an expansion.
func starts(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c != 0 && strings.IndexByte("({[@*#?$!-", c) >= 0
}

// substitution judges $( ) and backquotes. The parser and bash find the end of
// backquotes differently once there is a quote or a backslash between them.
func (s *script) substitution(c *syntax.CmdSubst) {
	if c.TempFile || c.ReplyVar {
		s.reject(c, RuleSyntax, "write $( ) instead")
	}
	if c.Backquotes {
		inner := s.src.between(c.Left.Offset()+1, c.Right.Offset())
		if strings.ContainsFunc(inner, notPlain) {
			s.reject(c, RuleAmbiguous, "backquotes with quotes, backslashes or expansions in them are read differently by different shells; write $( ) instead")
		}
	}
	s.stmts(c.Stmts)
}

func notPlain(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(" _./+-%:,=|", r)
}

// harmlessTransforms are the ${x@…} that neither expand a value again nor show
// it as code.
var harmlessTransforms = []string{"U", "u", "L", "Q"}

// param judges ${ }.
func (s *script) param(p *syntax.ParamExp, quoted bool) {
	keys := p.Excl && p.Index != nil && all(p.Index)
	switch {
	case p.Param == nil || p.Flags != nil || p.Width || p.IsSet || p.NestedParam != nil || len(p.Modifiers) > 0:
		s.reject(p, RuleSyntax, "this expansion is not one of bash")
		return
	case p.Index != nil && !identifier.MatchString(p.Param.Value):
		s.reject(p, RuleSyntax, "this is not an array")
	case p.Excl && p.Names == 0 && !keys:
		s.reject(p, RuleIndirect, "the variable that this names is only known when it runs")
	case p.Split != syntax.OptUnset || p.GlobSubst != syntax.OptUnset || p.RcExpand != syntax.OptUnset:
		s.reject(p, RuleSyntax, "this expansion is not one of bash")
	}
	s.subscript(p.Param.Value, p.Index, p)
	if p.Slice != nil {
		for _, x := range []syntax.ArithmExpr{p.Slice.Offset, p.Slice.Length} {
			if x != nil {
				s.arithmetic(x)
			}
		}
	}
	if p.Repl != nil {
		s.operand(p.Repl.Orig, quoted)
		s.operand(p.Repl.With, quoted)
	}
	if p.Exp != nil {
		s.expansion(p, quoted)
	}
}

func (s *script) expansion(p *syntax.ParamExp, quoted bool) {
	op := p.Exp.Op
	if op == syntax.OtherParamOps {
		name, ok := "", false
		if p.Exp.Word != nil {
			name, ok = literal(p.Exp.Word)
		}
		harmless := false
		for _, h := range harmlessTransforms {
			harmless = harmless || ok && name == h
		}
		if !harmless {
			s.reject(p, RuleIndirect, "this expands what the variable holds a second time")
		}
		return
	}
	if op == syntax.AssignUnset || op == syntax.AssignUnsetOrNull {
		s.assignable(p, p.Param.Value)
	}
	s.operand(p.Exp.Word, quoted)
}

// operand judges the word inside ${x:-word}, ${x%word} and their kin. Inside
// double quotes bash takes single quotes there for text and what is between
// them for an expansion; the parser does not.
func (s *script) operand(w *syntax.Word, quoted bool) {
	if w == nil {
		return
	}
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if oddOperand(p.Value) {
				s.reject(p, RuleAmbiguous, "quotes, braces and escapes inside ${ } are read differently by different shells; use a variable")
			}
		case *syntax.SglQuoted, *syntax.DblQuoted:
			if quoted {
				s.reject(p, RuleAmbiguous, "quotes inside a quoted ${ } are read differently by different shells; use a variable")
			}
		case *syntax.ProcSubst, *syntax.ExtGlob:
			s.reject(p, RuleAmbiguous, "this is not looked into inside ${ }")
		}
	}
	s.parts(w.Parts, quoted)
}

func oddOperand(text string) bool {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\'', '"', '`', '{', '}':
			return true
		case '<', '>':
			if i+1 < len(text) && text[i+1] == '(' {
				return true
			}
		case '\\':
			i++
			if i == len(text) || strings.IndexByte("'\"`{}$\n<>", text[i]) >= 0 {
				return true
			}
		}
	}
	return false
}
