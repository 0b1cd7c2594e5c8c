package policy

import (
	"errors"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// script is a parsed piece of shell.
type script struct {
	*judge

	src       source
	functions map[string]bool // that it declares anywhere
}

// line judges a script. All that one inside a word holds is at the place of the word.
func (j *judge) line(text string, fixed *place) {
	s := script{judge: j, src: newSource(text, fixed), functions: map[string]bool{}}
	if !j.checkText(s.src) {
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		s.badSyntax(err)
		return
	}
	if s.survey(file) {
		syntax.Walk(file, func(n syntax.Node) bool {
			s.node(n)
			return true
		})
	}
}

func (s *script) badSyntax(err error) {
	var parse syntax.ParseError
	var dialect syntax.LangError
	at, text := uint(0), err.Error()
	switch {
	case errors.As(err, &parse):
		at, text = parse.Pos.Offset(), parse.Text
	case errors.As(err, &dialect):
		at, text = dialect.Pos.Offset(), dialect.Feature+" are not known here"
	}
	s.refuse(s.src.at(at), RuleSyntax, "", "the shell cannot read this: %s", text)
}

// survey finds the functions and bounds the depth of the tree, so that whatever
// walks it later cannot run out of stack.
func (s *script) survey(file *syntax.File) bool {
	depth, ok := 0, true
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil {
			depth--
			return true
		}
		if depth++; depth > maxTreeDepth && ok {
			s.refuse(s.src.at(offset(n)), RuleDepth, "", "the command is nested more than %d levels deep", maxTreeDepth)
			ok = false
		}
		if f, is := n.(*syntax.FuncDecl); is && f.Name != nil {
			s.functions[f.Name.Value] = true
		}
		if !ok {
			depth--
		}
		return ok
	})
	return ok
}

// node judges one node of the tree; those below it are judged on their own.
func (s *script) node(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.CallExpr:
		if len(n.Args) > 0 {
			s.call(s.arguments(n.Args))
		}
	case *syntax.DeclClause:
		s.found(arg{at: s.src.at(offset(n)), text: n.Variant.Value}, n.Variant.Value, KindBuiltin)
	case *syntax.LetClause:
		s.found(arg{at: s.src.at(offset(n)), text: "let"}, "let", KindBuiltin)
	case *syntax.FuncDecl:
		if n.Name != nil && s.list.names(n.Name.Value) {
			s.refuse(s.src.at(offset(n.Name)), RuleFunction, n.Name.Value, "%s is the name of a command already; give the function another one", n.Name.Value)
		}
	case *syntax.Assign:
		if n.Name != nil && (!n.Naked || n.Index != nil) && guarded(n.Name.Value) {
			s.refuse(s.src.at(offset(n)), RuleVariable, n.Name.Value, "%s changes what the names of programs stand for or what programs load; it cannot be set", n.Name.Value)
		}
	case *syntax.Redirect:
		if target, _ := literal(n.Word); slices.ContainsFunc(networkFiles, func(p string) bool { return strings.HasPrefix(target, p) }) {
			s.refuse(s.src.at(offset(n.Word)), RuleRedirect, target, "%s is a network connection and not a file; use one in the workspace", shown(target))
		}
	}
}

// networkFiles are places of which bash makes network connections.
var networkFiles = []string{"/dev/tcp/", "/dev/udp/"}

// guarded reports a variable that changes which program a name stands for, or what
// is run or loaded before a program.
func guarded(name string) bool {
	return slices.Contains([]string{"PATH", "ENV", "SHELLOPTS", "BASHOPTS"}, name) || strings.HasPrefix(name, "BASH_") || strings.HasPrefix(name, "LD_")
}

// arg is one argument of a command, as far as it is known before it runs.
type arg struct {
	at      place
	word    string // as written
	text    string // the value, if literal; else the part of it that comes first
	literal bool
}

func (s *script) arguments(words []*syntax.Word) []arg {
	args := make([]arg, len(words))
	for i, w := range words {
		a := arg{at: s.src.at(offset(w))}
		if len(w.Parts) > 0 {
			a.word = s.src.text[w.Pos().Offset():w.End().Offset()]
		}
		a.text, a.literal = literal(w)
		args[i] = a
	}
	return args
}

// offset is where a node starts. A word can be empty, and then has no place.
func offset(n syntax.Node) uint {
	if w, is := n.(*syntax.Word); is && len(w.Parts) == 0 {
		return 0
	}
	return n.Pos().Offset()
}
