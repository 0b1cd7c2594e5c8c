package policy

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

var (
	unaryTests  = newPattern(`^-[abcdefghknoprstuwxzGLNOS]$`)
	binaryTests = newPattern(`^(=|==|!=|<|>|-eq|-ne|-lt|-le|-gt|-ge|-nt|-ot|-ef)$`)
)

// testCommand judges test and [. Its -v computes the subscript of what it is
// given; so operators must be written out, and what is not written out must be
// one field that stands where an operand must.
func testCommand(s *script, name arg, args []arg) {
	if name.text == "[" {
		if len(args) == 0 || !args[len(args)-1].literal || args[len(args)-1].text != "]" {
			s.refuse(name.at, RuleSyntax, name.text, "[ must end with ]")
			return
		}
		args = args[:len(args)-1]
	}
	open := false // some value is only known when it runs
	for _, a := range args {
		if !a.single && !a.operand && !a.number {
			s.refuse(a.at, RuleArgument, a.word, "this could become several words; put it in double quotes")
			return
		}
		open = open || !a.literal && !a.operand && !a.number
	}
	if len(args) > 1 && args[0].literal && args[0].text == "!" {
		args = args[1:]
	}
	is := func(i int, re *pattern) bool { return args[i].literal && re.MatchString(args[i].text) }
	switch {
	case !open && !slices.ContainsFunc(args, looksAtVariable), len(args) <= 1:
	case len(args) == 2 && is(0, unaryTests):
	case len(args) == 2 && args[0].literal && args[0].text == "-v":
		s.variable(name, args[1])
	case len(args) == 3 && is(1, binaryTests):
	default:
		s.refuse(args[0].at, RuleArgument, args[0].word, "this test can mean several things; use one operator in each test, and && or || between them")
	}
}

func looksAtVariable(a arg) bool { return a.literal && (a.text == "-v" || a.text == "-R") }

// computing are the operators of [[ ]] that evaluate both sides as arithmetic.
var computing = []syntax.BinTestOperator{syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr}

// testExpr judges what is between [[ and ]].
func (s *script) testExpr(x syntax.TestExpr) {
	switch x := x.(type) {
	case *syntax.BinaryTest:
		switch {
		case slices.Contains(computing, x.Op):
			s.computed(x.X)
			s.computed(x.Y)
		case x.Op == syntax.TsReMatch:
			s.testExpr(x.X)
			s.regex(x.Y)
		default:
			s.testExpr(x.X)
			s.testExpr(x.Y)
		}
	case *syntax.UnaryTest:
		s.testExpr(x.X)
		if x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar {
			w, _ := x.X.(*syntax.Word)
			if w == nil || !identifier.MatchString(w.Lit()) {
				s.reject(x, RuleArithmetic, "the variable must have a plain name that is written out; the shell would compute the rest")
			}
		}
	case *syntax.ParenTest:
		s.testExpr(x.X)
	case *syntax.Word:
		s.word(x)
	}
}

// computed judges one side of -eq and its kin, which bash evaluates: a number,
// or a variable that holds one.
func (s *script) computed(x syntax.TestExpr) {
	w, is := x.(*syntax.Word)
	if !is {
		s.reject(x, RuleArithmetic, "this is not a number")
		return
	}
	s.word(w)
	if s.facts.word(w)&number == 0 && (!identifier.MatchString(w.Lit()) || s.facts.of(w.Lit())&number == 0) {
		s.notNumber(w)
	}
}

var plainRegex = newPattern(`^[]A-Za-z0-9_^$.*+?[{}|()/:,=@%-]*$`)

// regex judges the right side of =~. The parser and bash differ on where an
// unquoted one ends, once there are blanks, quotes or operators in it.
func (s *script) regex(x syntax.TestExpr) {
	w, is := x.(*syntax.Word)
	if !is {
		s.reject(x, RuleAmbiguous, "put the pattern in a variable")
		return
	}
	for _, part := range w.Parts {
		if l, is := part.(*syntax.Lit); is && !plainRegex.MatchString(l.Value) {
			s.reject(l, RuleAmbiguous, "shells disagree on where this pattern ends; put it in a variable")
		}
	}
	s.word(w)
}
