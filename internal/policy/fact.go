package policy

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// fact is what is surely true of every value that a variable can have.
type fact uint8

const (
	// number: numbers with spaces between them, or empty. The shell finds nothing
	// to run in it when it computes, and it has no dash without a digit.
	number fact = 1 << iota
	// dashless: empty, or starts like the name of a file.
	dashless

	anyValue fact = 0
	noValue       = number | dashless // of a variable that is never set
)

// parameters stands for $1, $2, … and $@: what functions are called with.
const parameters = "@"

// facts hold for a whole script, whatever the order in which it runs.
type facts struct {
	known map[string]fact
	fresh bool
}

var (
	// special are the parameters that are numbers, counters the variables that
	// the shell keeps as numbers.
	special  = words{"#", "?", "$", "!"}
	counters = words{"RANDOM", "SRANDOM", "SECONDS", "LINENO", "EPOCHSECONDS", "PPID", "UID", "EUID", "SHLVL"}
)

// volatile are variables that the shell sets to what a script did before.
var volatile = words{"_", "0", "*", "-", "REPLY", "MAPFILE", "DIRSTACK", "FUNCNAME", "OPTARG"}

// words is a short list to look a word up in. It needs no making when the
// process starts, as a map would.
type words []string

func (w words) has(word string) bool { return slices.Contains(w, word) }

func (f facts) of(name string) fact {
	if name != "0" && strings.Trim(name, "0123456789") == "" {
		name = parameters
	}
	known, isSet := f.known[name]
	switch {
	case special.has(name):
		return number | dashless
	case name == "PWD" || name == "OLDPWD" || name == "HOME":
		return dashless // guarded: always a path from the root
	case !f.fresh || volatile.has(name) || strings.HasPrefix(name, "BASH") || strings.HasPrefix(name, "COMP_"):
		return anyValue
	case isSet:
		return known // also for RANDOM and its kin, which unset makes ordinary
	case counters.has(name):
		return number | dashless
	case name != parameters && strings.ToUpper(name) == name:
		return anyValue // from the environment of the image
	}
	return noValue
}

// setting is one way in which a variable gets a value.
type setting struct {
	name   string
	word   *syntax.Word // nil: fact holds
	fact   fact
	fields bool // the variable takes each field of the word, not the whole

	at      uint // where in the script
	outside bool // or before it, in the environment
}

const maxRounds = 32

// learn finds all that sets a variable and draws the conclusions. It starts
// from the best case and takes back what some setting contradicts, until
// nothing changes; the bound on rounds only makes it give up sooner.
func (s *script) learn(file *syntax.File) {
	s.facts = facts{known: map[string]fact{}, fresh: s.fresh}
	settings := s.settings(file)
	for _, x := range settings {
		s.facts.known[x.name] = noValue
	}
	changed := true
	for range maxRounds {
		changed = false
		for _, x := range settings {
			got := x.fact
			if x.word != nil {
				got = s.facts.word(x.word)
			}
			if x.fields && x.word != nil && splits(x.word) {
				got &= number // the pieces of a number are numbers
			}
			if was := s.facts.known[x.name]; was&got != was {
				s.facts.known[x.name] = was & got
				changed = true
			}
		}
		if !changed {
			break
		}
	}
	if changed {
		s.facts.known, s.facts.fresh = nil, false
	}
	s.learnMaps(file, settings)
}

// settings collects, in the whole tree, what sets a variable.
func (s *script) settings(file *syntax.File) []setting {
	var all []setting
	for _, name := range slices.Sorted(maps.Keys(s.env)) {
		all = append(all, setting{name: name, fact: textFact(s.env[name]), outside: true})
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		before := len(all)
		switch n := n.(type) {
		case *syntax.Assign:
			all = append(all, assignSettings(n)...)
		case *syntax.ForClause:
			all = append(all, loopSettings(n)...)
		case *syntax.BinaryArithm:
			if name, ok := arithmName(n.X); ok && slices.Contains(assigning, n.Op) {
				all = append(all, setting{name: name, fact: number})
			}
		case *syntax.UnaryArithm:
			if name, ok := arithmName(n.X); ok && (n.Op == syntax.Inc || n.Op == syntax.Dec) {
				all = append(all, setting{name: name, fact: number})
			}
		case *syntax.ParamExp:
			if n.Exp != nil && n.Param != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				all = append(all, setting{name: n.Param.Value, word: n.Exp.Word, fact: noValue})
			}
		case *syntax.Redirect:
			if n.N != nil && strings.HasPrefix(n.N.Value, "{") {
				all = append(all, setting{name: strings.Trim(n.N.Value, "{}"), fact: number | dashless})
			}
		case *syntax.CallExpr:
			all = append(all, s.callSettings(n)...)
		}
		for i := range all[before:] {
			all[before+i].at = offset(n)
		}
		return true
	})
	return all
}

func assignSettings(a *syntax.Assign) []setting {
	switch {
	case a.Name == nil && a.Value != nil:
		text, _ := literal(a.Value)
		name, text, _ := strings.Cut(text, "=")
		return []setting{{name: strings.TrimSuffix(name, "+"), fact: textFact(text)}}
	case a.Array != nil:
		var words []*syntax.Word
		for _, e := range a.Array.Elems {
			words = append(words, e.Value)
		}
		return append(fieldSettings(a.Name.Value, words), setting{name: a.Name.Value, fact: noValue})
	case a.Naked:
		return nil
	}
	return []setting{{name: a.Name.Value, word: a.Value, fact: noValue}}
}

func loopSettings(c *syntax.ForClause) []setting {
	l, is := c.Loop.(*syntax.WordIter)
	switch {
	case !is:
		return nil
	case c.Select:
		return []setting{{name: l.Name.Value, fact: anyValue}}
	case !l.InPos.IsValid():
		return []setting{{name: l.Name.Value, word: everyParameter, fact: noValue}}
	}
	return fieldSettings(l.Name.Value, l.Items)
}

// everyParameter is "$@".
var everyParameter = &syntax.Word{Parts: []syntax.WordPart{
	&syntax.DblQuoted{Parts: []syntax.WordPart{&syntax.ParamExp{Param: &syntax.Lit{Value: parameters}}}},
}}

// fieldSettings are those of a variable that takes each field of some words.
func fieldSettings(name string, words []*syntax.Word) []setting {
	var all []setting
	for _, w := range words {
		x := setting{name: name, word: w, fact: noValue}
		if w != nil && digitRange.MatchString(w.Lit()) {
			x.word, x.fact = nil, number
		}
		x.fields = true
		all = append(all, x)
	}
	return all
}

func (s *script) callSettings(c *syntax.CallExpr) []setting {
	if len(c.Args) == 0 {
		return nil
	}
	name, rest := value(c.Args[0]), c.Args[1:]
	if name == "command" && len(rest) > 0 {
		name, rest = value(rest[0]), rest[1:]
	}
	switch {
	case s.functions[name] != nil:
		return fieldSettings(parameters, rest)
	case name == "set":
		for i, w := range rest {
			if value(w) == "--" {
				return fieldSettings(parameters, rest[i+1:])
			}
		}
	case name == "read" || name == "mapfile" || name == "readarray" || name == "printf" && len(rest) > 0 && value(rest[0]) == "-v":
		var all []setting
		for _, w := range rest {
			if text, ok := literal(w); ok && identifier.MatchString(text) {
				all = append(all, setting{name: text, fact: anyValue})
			}
		}
		return all
	}
	return nil
}
