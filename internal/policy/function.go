package policy

import "mvdan.cc/sh/v3/syntax"

// function is what is known of the functions of one name.
type function struct {
	since int      // the statement of the script that surely defines it, or −1
	calls []string // names that its bodies call
	ready int      // since, but also for all that it calls; filled in by readySince
	asked bool
}

// identifier is the name of a variable; functions with other names are refused.
var identifier = newPattern(`^[A-Za-z_][A-Za-z0-9_]*$`)

// declare finds the functions of the script. Only one that is declared by a
// statement of its own surely exists afterwards: a branch may not be taken, and
// a subshell keeps its functions to itself.
func (s *script) declare(file *syntax.File) {
	s.functions = map[string]*function{}
	syntax.Walk(file, func(n syntax.Node) bool {
		if f, is := n.(*syntax.FuncDecl); is && f.Name != nil {
			known := s.functions[f.Name.Value]
			if known == nil {
				known = &function{since: -1}
				s.functions[f.Name.Value] = known
			}
			known.calls = append(known.calls, s.callsIn(f.Body)...)
		}
		return true
	})
	for i, st := range file.Stmts {
		f, is := st.Cmd.(*syntax.FuncDecl)
		if is && f.Name != nil && !st.Background && !st.Negated && len(st.Redirs) == 0 {
			if known := s.functions[f.Name.Value]; known.since < 0 {
				known.since = i
			}
		}
	}
}

func (s *script) callsIn(body syntax.Node) []string {
	var names []string
	seen := map[string]bool{}
	syntax.Walk(body, func(n syntax.Node) bool {
		if c, is := n.(*syntax.CallExpr); is && len(c.Args) > 0 {
			if name, ok := literal(c.Args[0]); ok && !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
		return true
	})
	return names
}

// readySince returns the statement after which name and every function that it
// can reach are defined, or −1.
func (s *script) readySince(name string) int {
	f := s.functions[name]
	if f.asked {
		return f.ready
	}
	f.asked = true
	seen := map[string]bool{name: true}
	todo := []string{name}
	latest := -1
	for len(todo) > 0 {
		g := s.functions[todo[0]]
		todo = todo[1:]
		if g.since < 0 {
			f.ready = -1
			return -1
		}
		latest = max(latest, g.since)
		for _, call := range g.calls {
			if s.functions[call] != nil && !seen[call] {
				seen[call] = true
				todo = append(todo, call)
			}
		}
	}
	f.ready = latest
	return latest
}

// checkFunction looks at a declaration and walks the body.
func (s *script) checkFunction(f *syntax.FuncDecl) {
	if f.Name == nil || !identifier.MatchString(f.Name.Value) {
		s.reject(f, RuleFunction, "the name of a function must be letters, digits and _")
		return
	}
	name := f.Name.Value
	_, builtin := builtins()[name]
	if builtin || s.list.allow[name] || s.list.deny[name] || s.list.ask[name] || name == "command_not_found_handle" {
		s.reject(f.Name, RuleFunction, "%s is the name of a command already; give the function another one", name)
	}
	if !plainBody(f.Body) {
		s.reject(f, RuleAmbiguous, "the body of a function must be { } or ( ), and end before any | && or ||")
	}
	defer func(was bool) { s.within = was }(s.within)
	s.within = true
	s.stmt(f.Body)
}

// plainBody reports { } and ( ). The parser takes a pipe behind the body for a
// part of it; to bash the pipe starts from the declaration.
func plainBody(st *syntax.Stmt) bool {
	switch st.Cmd.(type) {
	case *syntax.Block, *syntax.Subshell:
		return !st.Negated && !st.Background
	}
	return false
}

// callFunction checks that the function exists by the time it is called. What
// the body of another one calls is checked when that one is called.
func (s *script) callFunction(name arg) {
	s.found(name, name.text, KindFunction)
	if s.within {
		return
	}
	if since := s.readySince(name.text); since < 0 || since >= s.top {
		s.refuse(name.at, RuleFunction, name.text, "the function %s may not be defined when it is called, and then a program of that name would run; declare it, and what it calls, before and outside of any block", name.text)
	}
}
