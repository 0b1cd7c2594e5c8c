package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

var (
	digits      = newPattern(`^ *(-?[0-9]+( +-?[0-9]+)*)? *$`)
	digitRange  = newPattern(`^\{-?[0-9]+\.\.-?[0-9]+(\.\.-?[0-9]+)?\}$`)
	digitFormat = newPattern(`^\+(%[sYmdHMSjuw])+$`)
	digitSet    = newPattern(`^([0-9]-[0-9]|[0-9]+|\[:digit:\])$`)
)

// textFact is what holds for a value that is known.
func textFact(v string) fact {
	f := anyValue
	if digits.MatchString(v) {
		f |= number
	}
	if v == "" || operandStart(v[0]) && (f&number == 0 || !strings.Contains(v, "-")) {
		f |= dashless // numbers may be split, and then a later one starts with its dash
	}
	return f
}

// word is what holds for the value of a word, or for each field of it.
func (f facts) word(w *syntax.Word) fact {
	if w == nil {
		return noValue
	}
	return f.join(w.Parts)
}

// join is what holds for parts put together.
func (f facts) join(parts []syntax.WordPart) fact {
	whole := number | dashless
	started := false // something before surely was not empty
	for _, part := range parts {
		got := f.part(part)
		if started && !lists(part) {
			got |= dashless
		}
		whole &= got
		started = started || got&dashless != 0 && surelyText(part)
	}
	return whole
}

// lists reports whether a part makes many fields, each with its own start.
func lists(part syntax.WordPart) bool {
	switch p := part.(type) {
	case *syntax.ParamExp:
		return many(p)
	case *syntax.DblQuoted:
		return slices.ContainsFunc(p.Parts, lists)
	}
	return false
}

// splits reports whether some part of a word is split into fields.
func splits(w *syntax.Word) bool {
	return slices.ContainsFunc(w.Parts, func(part syntax.WordPart) bool {
		switch part.(type) {
		case *syntax.ParamExp, *syntax.CmdSubst:
			return true
		}
		return false
	})
}

// surelyText reports whether a part never is empty.
func surelyText(part syntax.WordPart) bool {
	switch p := part.(type) {
	case *syntax.Lit:
		return p.Value != ""
	case *syntax.SglQuoted:
		return p.Value != ""
	case *syntax.DblQuoted:
		return slices.ContainsFunc(p.Parts, surelyText)
	case *syntax.ProcSubst:
		return true
	}
	return false
}

// part is what holds for one part of a word.
func (f facts) part(part syntax.WordPart) fact {
	switch p := part.(type) {
	case *syntax.Lit:
		f := textFact(p.Value)
		if p.Value != "" && strings.IndexByte(`\*?[{`, p.Value[0]) >= 0 {
			f &^= dashless // a later part of a pattern is how it starts
		}
		return f
	case *syntax.SglQuoted:
		if p.Dollar {
			if text, ok := ansiText(p.Value); ok {
				return textFact(text)
			}
			return anyValue
		}
		return textFact(p.Value)
	case *syntax.DblQuoted:
		return f.join(p.Parts)
	case *syntax.ParamExp:
		return f.param(p)
	case *syntax.ArithmExp:
		return number
	case *syntax.ProcSubst:
		return dashless
	case *syntax.CmdSubst:
		return f.counts(p)
	}
	return anyValue
}

// keeping are the operators whose result starts as the value does, or is empty.
var keeping = []syntax.ParExpOperator{
	syntax.RemSmallSuffix, syntax.RemLargeSuffix,
	syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll,
}

// removing are the operators that take away the start of the value.
var removing = []syntax.ParExpOperator{syntax.RemSmallPrefix, syntax.RemLargePrefix}

// param is what holds for ${ }.
func (f facts) param(p *syntax.ParamExp) fact {
	switch {
	case p.Length:
		return number | dashless
	case p.Param == nil || p.Excl || p.Names != 0 || star(p):
		return anyValue
	}
	base := f.of(p.Param.Value)
	switch {
	case p.Slice != nil:
		return anyValue // of −5 it may leave the dash alone
	case p.Repl != nil:
		return replaced(p.Repl)
	case p.Exp == nil:
		return base
	}
	op := p.Exp.Op
	switch {
	case slices.Contains(keeping, op):
		return base & dashless
	case slices.Contains(removing, op):
		return anyValue
	case op == syntax.ErrorUnset || op == syntax.ErrorUnsetOrNull:
		return base
	case op == syntax.OtherParamOps:
		return anyValue
	case op == syntax.AlternateUnset || op == syntax.AlternateUnsetOrNull:
		return f.word(p.Exp.Word)
	}
	return base & f.word(p.Exp.Word) // ${x:-y}, ${x:=y}
}

// star reports ${a[*]}, whose fields are joined with what IFS says.
func star(p *syntax.ParamExp) bool {
	w, is := p.Index.(*syntax.Word)
	return is && w.Lit() == "*"
}

// replaced knows that ${x//[^0-9]/} leaves nothing but digits.
func replaced(r *syntax.Replace) fact {
	if r.All && r.Orig != nil && r.Orig.Lit() == "[^0-9]" && (r.With == nil || len(r.With.Parts) == 0) {
		return number | dashless
	}
	return anyValue
}

// counts knows the command substitutions that give nothing but a number, such
// as that of wc -l. It looks at the last command of a pipe.
func (f facts) counts(c *syntax.CmdSubst) fact {
	if len(c.Stmts) != 1 {
		return anyValue
	}
	st := c.Stmts[0]
	for {
		b, is := st.Cmd.(*syntax.BinaryCmd)
		if !is {
			break
		}
		if b.Op != syntax.Pipe {
			return anyValue
		}
		st = b.Y
	}
	call, is := st.Cmd.(*syntax.CallExpr)
	loud := slices.ContainsFunc(st.Redirs, func(r *syntax.Redirect) bool { return !quiet(r) })
	if !is || len(call.Assigns) > 0 || len(call.Args) == 0 || loud {
		return anyValue
	}
	return f.countingCall(call.Args)
}

// inputs are the redirections of standard input.
var inputs = []syntax.RedirOperator{syntax.RdrIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc}

// quiet reports a redirection that adds nothing to what a command prints.
func quiet(r *syntax.Redirect) bool {
	if slices.Contains(inputs, r.Op) && r.N == nil {
		return true
	}
	target, ok := literal(r.Word)
	return r.Op == syntax.RdrOut && r.N != nil && r.N.Value == "2" && ok && target == "/dev/null"
}

func (f facts) countingCall(words []*syntax.Word) fact {
	args := make([]string, 0, len(words))
	for _, w := range words[1:] {
		text, ok := literal(w)
		if !ok {
			text = "\x00" // no literal holds it
		}
		args = append(args, text)
	}
	counts, prints := false, false // what prints a number may print −5
	switch value(words[0]) {
	case "wc":
		counts = len(args) == 1 && slices.Contains([]string{"-l", "-w", "-c", "-m"}, args[0])
	case "date":
		counts = len(args) == 1 && digitFormat.MatchString(args[0])
	case "tr":
		counts = len(args) == 2 && (args[0] == "-dc" || args[0] == "-cd") && digitSet.MatchString(args[1])
	case "grep":
		counts = f.countingGrep(words[1:], args)
	case "printf":
		prints = len(args) > 0 && args[0] == "%d" || len(args) == 2 && args[0] == `%d\n` && single(words[2])
	case "echo":
		prints = !slices.ContainsFunc(words[1:], func(w *syntax.Word) bool { return f.word(w)&number == 0 })
	}
	switch {
	case counts:
		return number | dashless
	case prints:
		return number
	}
	return anyValue
}

var countingFlags = newPattern(`^-[ivwxEFPa]*c[ivwxEFPa]*$`)

// countingGrep knows grep -c pattern [file]: with one file or none it prints no
// names.
func (f facts) countingGrep(words []*syntax.Word, args []string) bool {
	if len(args) < 2 || len(args) > 3 || !countingFlags.MatchString(args[0]) {
		return false
	}
	for _, w := range words[1:] {
		if !single(w) || f.word(w)&dashless == 0 {
			return false
		}
	}
	return true
}
