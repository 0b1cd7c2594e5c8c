package policy

import "mvdan.cc/sh/v3/syntax"

func (s *script) stmts(list []*syntax.Stmt) {
	for _, st := range list {
		s.stmt(st)
	}
}

// stmt judges a statement and all that is below it.
func (s *script) stmt(st *syntax.Stmt) {
	if st.Coprocess || st.Disown {
		s.reject(st, RuleSyntax, "coprocesses are not looked into")
	}
	for _, r := range st.Redirs {
		s.redirect(r)
	}
	switch c := st.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		s.simple(c, st.Redirs)
	case *syntax.BinaryCmd:
		// To the parser these are keywords behind a |, to bash names of commands.
		if _, timed := c.Y.Cmd.(*syntax.TimeClause); (c.Op == syntax.Pipe || c.Op == syntax.PipeAll) && (timed || c.Y.Negated) {
			s.reject(c.Y, RuleAmbiguous, "time and ! can only stand at the start of a pipe")
		}
		s.stmt(c.X)
		s.stmt(c.Y)
	case *syntax.Block:
		s.stmts(c.Stmts)
	case *syntax.Subshell:
		s.stmts(c.Stmts)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			s.stmt(c.Stmt)
		}
	case *syntax.FuncDecl:
		s.checkFunction(c)
	case *syntax.DeclClause:
		s.declClause(c)
	default:
		s.compound(c)
	}
}

// compound judges the commands that hold others, and tests.
func (s *script) compound(cmd syntax.Command) {
	switch c := cmd.(type) {
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			s.stmts(c.Cond)
			s.stmts(c.Then)
		}
	case *syntax.WhileClause:
		s.stmts(c.Cond)
		s.stmts(c.Do)
	case *syntax.ForClause:
		s.loop(c)
	case *syntax.CaseClause:
		s.word(c.Word)
		for _, item := range c.Items {
			for _, w := range item.Patterns {
				s.word(w)
			}
			s.stmts(item.Stmts)
		}
	case *syntax.ArithmCmd:
		s.arithmetic(c.X)
	case *syntax.TestClause:
		s.testExpr(c.X)
	case *syntax.LetClause:
		s.reject(c, RuleBuiltin, "let is not looked into; write $(( )) instead")
	case *syntax.CoprocClause:
		s.reject(c, RuleBuiltin, "coproc is not looked into")
		s.stmt(c.Stmt)
	default:
		s.reject(c, RuleSyntax, "this kind of command is not looked into")
	}
}

func (s *script) loop(c *syntax.ForClause) {
	if c.Select {
		s.reject(c, RuleSyntax, "select is not looked into; there is nobody to choose")
	}
	switch l := c.Loop.(type) {
	case *syntax.WordIter:
		s.assignable(l.Name, l.Name.Value)
		for _, w := range l.Items {
			s.word(w)
		}
	case *syntax.CStyleLoop:
		for _, x := range []syntax.ArithmExpr{l.Init, l.Cond, l.Post} {
			if x != nil {
				s.arithmetic(x)
			}
		}
	}
	s.stmts(c.Do)
}

// simple judges one command: assignments, then a name with arguments.
func (s *script) simple(c *syntax.CallExpr, redirs []*syntax.Redirect) {
	reads := false // IFS may be set for read alone: it changes nothing else
	if len(c.Args) > 0 {
		name, _ := literal(c.Args[0])
		reads = name == "read"
	}
	for _, a := range c.Assigns {
		if reads && a.Name != nil && a.Name.Value == "IFS" && a.Array == nil && a.Index == nil {
			if a.Value != nil {
				s.word(a.Value)
			}
			continue
		}
		s.assign(a)
	}
	if len(c.Args) == 0 {
		return
	}
	args := make([]arg, len(c.Args))
	for i, w := range c.Args {
		s.word(w)
		args[i] = s.argument(w)
	}
	s.call(args, s.standardInput(redirs))
}
