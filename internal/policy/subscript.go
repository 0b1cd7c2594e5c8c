package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// subscript judges the index of an array element. Bash computes the index of an
// indexed array; the key of an associative one is text.
func (s *script) subscript(name string, index syntax.ArithmExpr, n syntax.Node) {
	if index == nil || all(index) {
		return
	}
	w, is := index.(*syntax.Word)
	if since, ok := s.maps[name]; is && ok && offset(n) > since {
		s.word(w)
		return
	}
	s.arithmetic(index)
}

// all reports the index @ or *.
func all(index syntax.ArithmExpr) bool {
	w, is := index.(*syntax.Word)
	return is && (w.Lit() == "@" || w.Lit() == "*")
}

// learnMaps finds the arrays that surely are associative: the first that the
// script says of them is declare -A, in a statement of its own, and it never
// says otherwise.
func (s *script) learnMaps(file *syntax.File, settings []setting) {
	s.maps = map[string]uint{}
	if !s.facts.fresh {
		return
	}
	for _, st := range file.Stmts {
		d, is := st.Cmd.(*syntax.DeclClause)
		if is && !st.Background && len(st.Redirs) == 0 && declaresMap(d) {
			s.declareMaps(d)
		}
	}
	for _, x := range settings {
		if since, ok := s.maps[x.name]; ok && (x.outside || x.at < since) {
			delete(s.maps, x.name)
		}
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if d, is := n.(*syntax.DeclClause); is && !declaresMap(d) {
			for _, a := range d.Args {
				if a.Name != nil {
					delete(s.maps, a.Name.Value)
				}
			}
		}
		return true
	})
}

func (s *script) declareMaps(d *syntax.DeclClause) {
	for _, a := range d.Args {
		if a.Name == nil || strings.ToUpper(a.Name.Value) == a.Name.Value {
			continue // the shell has arrays of its own, in capitals
		}
		if _, ok := s.maps[a.Name.Value]; !ok {
			s.maps[a.Name.Value] = offset(d)
		}
	}
}

// declaresMap reports declare -A and its kin.
func declaresMap(d *syntax.DeclClause) bool {
	return len(d.Args) > 0 && d.Args[0].Name == nil && d.Args[0].Value != nil && value(d.Args[0].Value) == "-A"
}
