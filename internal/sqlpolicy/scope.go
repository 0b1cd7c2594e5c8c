package sqlpolicy

import "maps"

// scope is what names mean in one query: its own, and around it those of the query
// that it is a part of.
type scope struct {
	outer *scope
	ctes  map[string]*relation // of WITH, by their names
	from  []*relation          // what FROM has brought so far
	names map[string]bool      // of columns that the query itself makes, and of a lambda's parameters

	recursive string      // the name under which the right side of a recursive query sees the left
	sides     []*relation // what the sides of a set operation give
}

// relation is something with columns: a table, or what a query gives. Its names are
// in lower case.
type relation struct {
	name    string
	dataset string // of a table
	columns map[string]origin
	denied  map[string]Table // columns that a table has, and the grant does not show
	bounded *Table           // of which the grant shows these columns, and nobody knows the others
	open    bool             // it may have other columns, too
}

// origin is the column of a table behind a column, if there is one.
type origin struct {
	use    *use
	column string
}

func newRelation(name string) *relation {
	return &relation{name: lower(name), columns: map[string]origin{}, denied: map[string]Table{}}
}

// called returns a relation under another name, its first columns, too.
func (j *judge) called(r *relation, name string, columns []string) *relation {
	out := *r
	if name != "" {
		out.name, out.dataset = lower(name), ""
	}
	if len(columns) > 0 && j.spend(len(r.columns)+len(r.denied)) {
		out.columns, out.denied = maps.Clone(r.columns), maps.Clone(r.denied)
		for _, c := range columns {
			out.columns[lower(c)] = origin{}
			delete(out.denied, lower(c))
		}
	}
	return &out
}

// take adds to a relation what another has, but for the columns that are left out.
func (j *judge) take(to, from *relation, out map[string]bool) {
	if !j.spend(len(from.columns) + len(from.denied)) {
		return
	}
	to.open = to.open || from.open
	if from.bounded != nil {
		to.bounded = from.bounded
	}
	for name, c := range from.columns {
		if !out[name] {
			to.columns[name] = c
		}
	}
	for name, table := range from.denied {
		if !out[name] {
			to.denied[name] = table
		}
	}
}

// hidden returns the table that may have a column, if the grant does not show it.
func (r *relation) hidden(name string) (Table, bool) {
	if t, ok := r.denied[name]; ok {
		return t, true
	}
	if r.bounded != nil {
		return *r.bounded, true
	}
	return Table{}, false
}

// cte returns the common table expression that a name means here.
func (s *scope) cte(name string) *relation {
	for ; s != nil; s = s.outer {
		if r := s.ctes[lower(name)]; r != nil {
			return r
		}
	}
	return nil
}

// define makes a relation known under its name.
func (s *scope) define(name string, r *relation) {
	if s.ctes == nil {
		s.ctes = map[string]*relation{}
	}
	s.ctes[lower(name)] = r
}

// ofModifiers is where ORDER BY and its like look names up: behind a set operation
// they see the columns that it gives.
func (s *scope) ofModifiers() *scope {
	if len(s.sides) == 0 {
		return s
	}
	return &scope{outer: s, from: s.sides}
}
