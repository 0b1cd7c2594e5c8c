package fake

import (
	"errors"
	"maps"
	"regexp"
	"slices"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/pattern"
	"mvdan.cc/sh/v3/syntax"
)

func (sh *shell) stmts(list []*syntax.Stmt) {
	for _, st := range list {
		sh.stmt(st)
		if sh.flow != goOn {
			return
		}
	}
}

func (sh *shell) stmt(st *syntax.Stmt) {
	if sh.p.step() != nil {
		sh.flow = exitShell
		return
	}
	if sh.handleTraps(); sh.flow != goOn {
		return
	}
	defer func(before int) {
		sh.p.refund(sh.borrowed - before)
		sh.borrowed = before
	}(sh.borrowed)
	if st.Background {
		sh.background(st)
		return
	}
	if st.Negated {
		sh.guarded++
	}
	sh.redirected(st)
	if st.Negated {
		sh.guarded--
		sh.status = oneIf(sh.status == 0)
	}
	if sh.status != 0 && sh.errexit && sh.guarded == 0 && !st.Negated && decisive(st.Cmd) {
		sh.flow = exitShell
	}
	if sh.flow == goOn {
		sh.handleTraps()
	}
}

// decisive reports whether a failure of the command itself counts for set -e.
// That of a list or a compound has been judged inside it.
func decisive(cmd syntax.Command) bool {
	switch c := cmd.(type) {
	case *syntax.BinaryCmd:
		return c.Op == syntax.Pipe || c.Op == syntax.PipeAll
	case *syntax.CallExpr, *syntax.Subshell, *syntax.TestClause, *syntax.ArithmCmd, *syntax.DeclClause:
		return true
	}
	return false
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// background plays a statement beside the shell. Its input is empty and the
// keys of the terminal do not reach it.
func (sh *shell) background(st *syntax.Stmt) {
	fds := sh.p.copyTable()
	fds.set(0, newFile(null{}))
	front := *st
	front.Background = false
	kid, err := sh.fork(fds, func(sub *shell) {
		sub.p.handle("INT", true, false)
		sub.p.handle("QUIT", true, false)
		sub.forked([]*syntax.Stmt{&front})
	})
	if err == nil {
		if len(sh.kids) >= maxKids {
			sh.kids = slices.DeleteFunc(sh.kids, func(p *proc) bool { return p.over() })
		}
		sh.kids = append(sh.kids, kid)
		sh.lastKid = kid.pid
		sh.status = 0
	}
}

// command plays one command, redirections aside.
func (sh *shell) command(st *syntax.Stmt) {
	switch c := st.Cmd.(type) {
	case nil:
		sh.status = 0
	case *syntax.CallExpr:
		sh.call(c, sh.last == st)
	case *syntax.Block:
		sh.stmts(c.Stmts)
	case *syntax.Subshell:
		if kid, err := sh.fork(sh.p.copyTable(), func(sub *shell) { sub.forked(c.Stmts) }); err == nil {
			sh.status = sh.await(kid)
		}
	case *syntax.BinaryCmd:
		sh.binary(c)
	case *syntax.IfClause:
		sh.ifClause(c)
	case *syntax.WhileClause:
		sh.while(c)
	case *syntax.ForClause:
		sh.forClause(c)
	case *syntax.CaseClause:
		sh.caseClause(c)
	case *syntax.FuncDecl:
		sh.funcs[c.Name.Value] = c.Body
		sh.status = 0
	case *syntax.DeclClause:
		sh.declare(c)
	case *syntax.TestClause:
		sh.testClause(c)
	case *syntax.ArithmCmd:
		sh.arithmetic(c.X)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			sh.arithmetic(x)
		}
	case *syntax.TimeClause:
		if c.Stmt != nil {
			sh.stmt(c.Stmt)
		}
	default:
		sh.fail(exitSyntax, "this kind of command is not played here")
	}
}

func (sh *shell) arithmetic(x syntax.ArithmExpr) {
	n, err := expand.Arithm(sh.cfg, x)
	if err != nil {
		sh.expansionFailed(err)
		return
	}
	sh.status = oneIf(n == 0)
}

// condition plays statements whose failure is an answer.
func (sh *shell) condition(list []*syntax.Stmt) bool {
	sh.guarded++
	sh.stmts(list)
	sh.guarded--
	return sh.status == 0 && sh.flow == goOn
}

func (sh *shell) binary(c *syntax.BinaryCmd) {
	switch c.Op {
	case syntax.AndStmt, syntax.OrStmt:
		yes := sh.condition([]*syntax.Stmt{c.X})
		if sh.flow == goOn && yes == (c.Op == syntax.AndStmt) {
			sh.stmt(c.Y)
		}
	case syntax.Pipe, syntax.PipeAll:
		sh.pipeline(c)
	}
}

// pipeline plays every part in a process of its own.
func (sh *shell) pipeline(c *syntax.BinaryCmd) {
	stages := []*syntax.Stmt{c.Y}
	both := []bool{false, c.Op == syntax.PipeAll} // whether a stage's errors go into the pipe as well
	left := c.X
	for {
		b, ok := left.Cmd.(*syntax.BinaryCmd)
		if !ok || b.Op != syntax.Pipe && b.Op != syntax.PipeAll || left.Negated || len(left.Redirs) > 0 {
			break
		}
		stages = append(stages, b.Y)
		both = append(both, b.Op == syntax.PipeAll)
		left = b.X
	}
	stages = append(stages, left)

	var kids []*proc
	var in *file
	for i, st := range slices.Backward(stages) {
		fds := sh.p.copyTable()
		if in != nil {
			fds.set(0, in)
			in = nil
		}
		if i > 0 {
			r, w := newPipe()
			fds.set(1, w)
			if both[i] {
				fds.set(2, w.retain())
			}
			in = r
		}
		kid, err := sh.fork(fds, func(sub *shell) { sub.forked([]*syntax.Stmt{st}) })
		if err != nil {
			break
		}
		kids = append(kids, kid)
	}
	if in != nil {
		in.release()
	}
	failed := 0
	for _, kid := range kids {
		if sh.status = sh.await(kid); sh.status != 0 {
			failed = sh.status
		}
	}
	if sh.pipefail && sh.status == 0 {
		sh.status = failed
	}
}

func (sh *shell) ifClause(c *syntax.IfClause) {
	for ; c != nil; c = c.Else {
		if len(c.Cond) == 0 || sh.condition(c.Cond) {
			sh.status = 0
			sh.stmts(c.Then)
			return
		}
		if sh.flow != goOn {
			return
		}
	}
	sh.status = 0
}

// looped acts on break and continue after one turn. It reports whether there
// is another turn.
func (sh *shell) looped() bool {
	if sh.flow != breakLoop && sh.flow != continueLoop {
		return sh.flow == goOn
	}
	if sh.flowN > 1 {
		sh.flowN--
		return false
	}
	again := sh.flow == continueLoop
	sh.flow = goOn
	return again
}

func (sh *shell) while(c *syntax.WhileClause) {
	code := 0
	for {
		yes := sh.condition(c.Cond)
		if sh.flow != goOn || yes == c.Until {
			break
		}
		sh.stmts(c.Do)
		code = sh.status
		if !sh.looped() {
			break
		}
	}
	if sh.flow == goOn {
		sh.status = code
	}
}

func (sh *shell) forClause(c *syntax.ForClause) {
	switch loop := c.Loop.(type) {
	case *syntax.WordIter:
		items := sh.args
		if loop.InPos.IsValid() {
			var ok bool
			if items, ok = sh.fields(loop.Items...); !ok {
				return
			}
		}
		sh.status = 0
		for _, item := range items {
			sh.set(loop.Name.Value, item)
			sh.stmts(c.Do)
			if !sh.looped() {
				return
			}
		}
	case *syntax.CStyleLoop:
		sh.countedLoop(loop, c.Do)
	}
}

func (sh *shell) countedLoop(loop *syntax.CStyleLoop, do []*syntax.Stmt) {
	eval := func(x syntax.ArithmExpr) bool {
		if x == nil {
			return true
		}
		sh.arithmetic(x)
		return sh.status == 0
	}
	for eval(loop.Init); eval(loop.Cond) && sh.p.step() == nil; eval(loop.Post) {
		sh.stmts(do)
		if !sh.looped() {
			return
		}
	}
	sh.status = 0
}

func (sh *shell) caseClause(c *syntax.CaseClause) {
	word, ok := sh.literal(c.Word)
	if !ok {
		return
	}
	sh.status = 0
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			if sh.matches(word, p) {
				sh.stmts(item.Stmts)
				return
			}
		}
	}
}

// matches reports whether a text fits a pattern of the shell.
func (sh *shell) matches(text string, w *syntax.Word) bool {
	pat, err := expand.Pattern(sh.cfg, w)
	if err != nil {
		sh.expansionFailed(err)
		return false
	}
	expr, err := pattern.Regexp(pat, pattern.EntireString)
	if err != nil {
		return pat == text
	}
	rx, err := regexp.Compile(expr)
	return err == nil && rx.MatchString(text)
}

// call plays a simple command. With inPlace a program takes over the process.
func (sh *shell) call(c *syntax.CallExpr, inPlace bool) {
	sh.substituted = 0
	args, ok := sh.fields(c.Args...)
	if !ok {
		return
	}
	if len(args) == 0 {
		if sh.assign(c.Assigns, nil) {
			sh.status = sh.substituted
		}
		return
	}
	if len(c.Assigns) > 0 {
		defer sh.restore(c.Assigns)()
		if !sh.assign(c.Assigns, func(v *expand.Variable) { v.Exported = true }) {
			return
		}
	}
	if body := sh.funcs[args[0]]; body != nil {
		sh.function(body, args)
		return
	}
	if run := builtin(args[0]); run != nil {
		sh.status = run(sh, args)
		return
	}
	sh.external(args, inPlace)
}

// restore returns what undoes assignments that hold for one command.
func (sh *shell) restore(list []*syntax.Assign) func() {
	saved := map[string]expand.Variable{}
	for _, a := range list {
		if a.Name != nil {
			saved[a.Name.Value] = sh.vars[a.Name.Value]
		}
	}
	return func() { maps.Copy(sh.vars, saved) }
}

// function plays a function with arguments and variables of its own.
func (sh *shell) function(body *syntax.Stmt, args []string) {
	if sh.depth++; sh.depth > maxDepth {
		sh.fail(1, "%s: maximum function nesting level exceeded", args[0])
		sh.flow = exitShell
		return
	}
	outer := sh.args
	sh.args = args[1:]
	sh.scopes = append(sh.scopes, map[string]expand.Variable{})
	sh.stmt(body)
	maps.Copy(sh.vars, sh.scopes[len(sh.scopes)-1])
	sh.scopes = sh.scopes[:len(sh.scopes)-1]
	sh.args = outer
	sh.depth--
	if sh.flow == returnFunc {
		sh.flow = goOn
	}
}

// external runs a program and waits for it.
func (sh *shell) external(args []string, inPlace bool) {
	found := sh.p.m.resolve(args[0], sh.vars["PATH"].Str, sh.dir)
	if found.run == nil {
		sh.fail(found.code, "%s: %s", args[0], found.why)
		return
	}
	env := sh.exported()
	if inPlace && len(sh.traps) == 0 {
		sh.become(found.run, args, env)
		return
	}
	fds := sh.p.copyTable()
	p, err := sh.p.m.fork(sh.p.job, sh.p, fds)
	if err != nil {
		fds.release()
		sh.noFork(err)
		return
	}
	c := newCall(p, args, env, sh.dir)
	go func() { p.exit(found.run(c)) }()
	sh.status = sh.await(p)
}

// become replaces the shell by a program in the same process.
func (sh *shell) become(run program, args []string, env map[string]string) {
	c := newCall(sh.p, args, env, sh.dir)
	if c.deep = sh.c.deep + 1; c.deep > maxBecome {
		sh.fail(1, "%s: too many levels of programs that run programs", args[0])
		sh.flow = exitShell
		return
	}
	sh.status = run(c)
	sh.flow = exitShell
}

// declare is export, readonly, local and declare.
func (sh *shell) declare(c *syntax.DeclClause) {
	sh.status = 0
	var names []*syntax.Assign
	for _, a := range c.Args {
		if a.Name == nil { // an option, or a name that an expansion gives
			word, ok := sh.literal(a.Value)
			if !ok {
				return
			}
			if len(word) > 0 && word[0] == '-' {
				continue
			}
			sh.fail(1, "%s: not played here", word)
			return
		}
		names = append(names, a)
	}
	local := c.Variant.Value == "local" || c.Variant.Value == "declare" && len(sh.scopes) > 0
	if local {
		if err := sh.hide(names); err != nil {
			sh.fail(1, "%v", err)
			return
		}
	}
	sh.assign(names, func(v *expand.Variable) {
		v.Exported = v.Exported || c.Variant.Value == "export"
		v.ReadOnly = v.ReadOnly || c.Variant.Value == "readonly"
	})
}

// hide remembers what local variables stand in front of.
func (sh *shell) hide(names []*syntax.Assign) error {
	if len(sh.scopes) == 0 {
		return errors.New("local: can only be used in a function")
	}
	scope := sh.scopes[len(sh.scopes)-1]
	for _, a := range names {
		name := a.Name.Value
		if _, done := scope[name]; !done {
			scope[name] = sh.vars[name]
		}
		sh.vars[name] = expand.Variable{Exported: sh.vars[name].Exported}
	}
	return nil
}
