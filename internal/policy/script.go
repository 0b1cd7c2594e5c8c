package policy

import (
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// lang is the dialect that a script is read in.
type lang = syntax.LangVariant

const (
	bash  = syntax.LangBash
	posix = syntax.LangPOSIX
)

// script is a parsed piece of shell and what is known about it as a whole.
type script struct {
	*judge

	src   source
	lang  lang
	fresh bool              // no variable is set but those of the sandbox and env
	env   map[string]string // set by callers

	facts     facts
	functions map[string]*function
	maps      map[string]uint // arrays that are surely associative, and from which byte on
	top       int             // the statement of the script that is being walked
	within    bool            // in the body of a function
}

// line judges a script.
func (j *judge) line(s script) {
	s.judge = j
	if !j.checkText(s.src) {
		return
	}
	file, err := syntax.NewParser(syntax.Variant(s.lang), syntax.KeepComments(true)).Parse(strings.NewReader(s.src.text), "")
	if err != nil {
		s.badSyntax(err)
		return
	}
	quoted, ok := s.survey(file)
	if !ok {
		return
	}
	j.checkContinuations(s.src, quoted)
	s.declare(file)
	s.learn(file)
	for i, st := range file.Stmts {
		s.top = i
		s.stmt(st)
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

// survey bounds the depth of the tree, so that whatever walks it later cannot
// run out of stack, and finds the text in which a backslash means nothing.
func (s *script) survey(file *syntax.File) (quoted []span, ok bool) {
	depth, ok := 0, true
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil {
			depth--
			return true
		}
		if depth++; depth > maxTreeDepth {
			if ok {
				s.refuse(s.src.at(offset(n)), RuleDepth, "", "the command is nested more than %d levels deep", maxTreeDepth)
			}
			ok = false
		}
		switch n := n.(type) {
		case *syntax.Comment:
			s.checkComment(n)
		case *syntax.SglQuoted:
			if !n.Dollar {
				quoted = append(quoted, span{n.Left.Offset(), n.Right.Offset()})
			}
		case *syntax.Redirect:
			if n.Hdoc != nil && len(n.Hdoc.Parts) > 0 && quotedDelimiter(n.Word) {
				quoted = append(quoted, span{n.Hdoc.Pos().Offset(), n.Hdoc.End().Offset()})
			}
		}
		if !ok {
			depth--
		}
		return ok
	})
	return quoted, ok
}

// checkComment refuses what only the parser takes for a comment: a # behind a
// quote in the middle of a word, and the line after a comment that ends in a
// backslash.
func (s *script) checkComment(c *syntax.Comment) {
	at := c.Hash.Offset()
	if at > 0 && strings.IndexByte(" \t\n;", s.src.text[at-1]) < 0 {
		s.reject(c, RuleAmbiguous, "shells disagree on whether this is a comment; put a blank before the #")
	}
	if line, _, _ := strings.Cut(s.src.text[at:], "\n"); strings.HasSuffix(line, `\`) {
		s.reject(c, RuleAmbiguous, "shells disagree on whether this comment goes on; take the backslash away")
	}
}

// offset is where a node starts. A word can be empty, and then has no place.
func offset(n syntax.Node) uint {
	if w, is := n.(*syntax.Word); is && len(w.Parts) == 0 {
		return 0
	}
	return n.Pos().Offset()
}

// text is a node as it was written.
func (s *script) text(n syntax.Node) string {
	if w, is := n.(*syntax.Word); is && len(w.Parts) == 0 {
		return ""
	}
	return s.src.between(n.Pos().Offset(), n.End().Offset())
}

// reject refuses a node.
func (s *script) reject(n syntax.Node, rule, format string, args ...any) {
	s.refuse(s.src.at(offset(n)), rule, s.text(n), format, args...)
}
