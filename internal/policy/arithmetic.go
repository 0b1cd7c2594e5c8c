package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

var arithmNumber = newPattern(`^([0-9]+|0[xX][0-9a-fA-F]+|[0-9]{1,2}#[0-9A-Za-z]+)$`)

// assigning are the operators of arithmetic that set a variable.
var assigning = []syntax.BinAritOperator{
	syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn,
	syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn,
}

// alien are operators that bash does not have.
var alien = []syntax.BinAritOperator{
	syntax.XorBool, syntax.AndBoolAssgn, syntax.OrBoolAssgn, syntax.XorBoolAssgn, syntax.PowAssgn,
}

// arithmetic judges an expression. Bash evaluates the text that a variable
// holds as an expression again, and runs the substitutions that it finds in the
// subscripts there; so every variable must be known to hold a number.
func (s *script) arithmetic(x syntax.ArithmExpr) {
	switch x := x.(type) {
	case *syntax.BinaryArithm:
		if slices.Contains(alien, x.Op) {
			s.reject(x, RuleSyntax, "this operator is not one of bash")
		}
		if slices.Contains(assigning, x.Op) {
			s.arithmSet(x.X)
		}
		s.arithmetic(x.X)
		s.arithmetic(x.Y)
	case *syntax.UnaryArithm:
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			s.arithmSet(x.X)
		}
		s.arithmetic(x.X)
	case *syntax.ParenArithm:
		s.arithmetic(x.X)
	case *syntax.Word:
		s.arithmWord(x)
	default:
		s.reject(x, RuleArithmetic, "this is not arithmetic of bash")
	}
}

// arithmSet judges what an expression sets.
func (s *script) arithmSet(x syntax.ArithmExpr) {
	name, ok := arithmName(x)
	if !ok {
		s.reject(x, RuleSyntax, "this is not a variable")
		return
	}
	s.assignable(x, name)
}

// arithmName returns the variable that stands in an expression, without $.
func arithmName(x syntax.ArithmExpr) (string, bool) {
	w, is := x.(*syntax.Word)
	if !is || len(w.Parts) != 1 {
		return "", false
	}
	switch p := w.Parts[0].(type) {
	case *syntax.Lit:
		return p.Value, identifier.MatchString(p.Value)
	case *syntax.ParamExp:
		if p.Short && p.Index != nil && p.Param != nil && !p.Dollar.IsValid() {
			return p.Param.Value, identifier.MatchString(p.Param.Value)
		}
	}
	return "", false
}

func (s *script) arithmWord(w *syntax.Word) {
	if len(w.Parts) == 1 {
		if l, is := w.Parts[0].(*syntax.Lit); is {
			s.arithmLit(w, l.Value)
			return
		}
	}
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit: // the base of 10#$x
			if strings.Trim(p.Value, "0123456789#") != "" {
				s.notNumber(p)
			}
			continue
		case *syntax.ParamExp:
			if p.Index != nil && !p.Dollar.IsValid() && !all(p.Index) {
				s.arithmetic(p.Index) // computed, also for the key of a map
			}
			s.param(p, true)
		case *syntax.ArithmExp:
			s.arithmetic(p.X)
		case *syntax.CmdSubst:
			s.substitution(p)
		}
		if s.facts.part(part)&number == 0 {
			s.notNumber(part)
		}
	}
}

func (s *script) arithmLit(w *syntax.Word, text string) {
	switch {
	case arithmNumber.MatchString(text):
	case !identifier.MatchString(text):
		s.reject(w, RuleArithmetic, "this is neither a number nor a variable")
	case s.facts.of(text)&number == 0:
		s.notNumber(w)
	}
}

func (s *script) notNumber(n syntax.Node) {
	s.reject(n, RuleArithmetic, "this may hold more than a number, and the shell would run what it holds; set it to a number, to $((…)), or with printf %%d")
}
