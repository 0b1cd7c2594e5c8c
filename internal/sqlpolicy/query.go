package sqlpolicy

import "strings"

// subquery visits a query that is a part of what this scope belongs to. The sides
// of a set operation are kept: together they are what it gives.
func (j *judge) subquery(name string, v any, s *scope) {
	if v == nil {
		return
	}
	inner := s
	if name == "right" && s.recursive != "" && len(s.sides) > 0 {
		inner = &scope{outer: s}
		left := j.called(s.sides[0], s.recursive, nil)
		left.open = true
		inner.define(s.recursive, left)
	}
	s.sides = append(s.sides, j.query(v, inner))
}

// query visits a query and returns what it gives.
func (j *judge) query(v any, outer *scope) *relation {
	defer func() { j.nest-- }()
	if j.nest++; j.nest > maxNest {
		j.refuse(RuleSize, "", "the statement has more than %d queries within each other", maxNest)
		return newRelation("")
	}
	o, _ := v.(object)
	s := &scope{outer: outer, names: map[string]bool{}}
	if text(o, "type") == "RECURSIVE_CTE_NODE" {
		s.recursive = text(o, "cte_name")
	}
	for _, e := range objects(o, "select_list") {
		if alias := text(e, "alias"); alias != "" {
			s.names[lower(alias)] = true
		}
	}
	j.kind(v, "node", queries, s)
	out := newRelation("")
	for _, side := range s.sides {
		j.take(out, side, nil)
	}
	for _, e := range objects(o, "select_list") {
		j.gives(out, e, s)
	}
	return out
}

// gives adds to a relation what an expression of the select list gives.
func (j *judge) gives(out *relation, e object, s *scope) {
	alias, columns := text(e, "alias"), texts(e, "column_names")
	switch {
	case alias != "":
		out.columns[lower(alias)] = origin{}
	case text(e, "class") == "STAR":
		from := s.named(text(e, "relation_name"))
		hidden := excluded(e)
		for _, r := range from {
			j.take(out, r, hidden)
		}
		out.open = out.open || len(from) == 0 || e["columns"] == true
	case len(columns) > 0:
		out.columns[lower(columns[len(columns)-1])] = origin{}
	case strings.HasPrefix(lower(text(e, "function_name")), "un"), text(e, "type") == "OPERATOR_UNPACK":
		out.open = true // the fields of a struct become columns
	}
}

// excluded returns the columns that EXCLUDE takes from a star.
func excluded(star object) map[string]bool {
	out := map[string]bool{}
	for _, name := range texts(star, "exclude_list") {
		out[lower(name)] = true
	}
	return out
}

// named returns what a star stands for: what FROM brought under the name, or all.
func (s *scope) named(name string) []*relation {
	if name == "" {
		return s.from
	}
	for ; s != nil; s = s.outer {
		for _, r := range s.from {
			if r.name == lower(name) {
				return []*relation{r}
			}
		}
	}
	return nil
}

// with visits the common table expressions of WITH. Each sees those before it and,
// under its own name, what it would see without itself.
func (j *judge) with(v any, s *scope) {
	o, ok := v.(object)
	if !ok {
		j.unknown("cte_map", v)
		return
	}
	for key := range o {
		if !ctesShape.has(key) {
			j.unknown("cte_map."+key, nil)
		}
	}
	list, ok := o["map"].([]any)
	if !ok && o["map"] != nil {
		j.unknown("map", o["map"])
	}
	for _, e := range list {
		j.cte(e, s)
	}
}

func (j *judge) cte(v any, s *scope) {
	entry, _ := v.(object)
	body, ok := entry["value"].(object)
	name := text(entry, "key")
	if !ok || name == "" || len(entry) != len(cteShape) {
		j.unknown("map", nil)
		return
	}
	if engines(name) {
		j.refuse(RuleCatalog, name, "%s is a name that the engine keeps for itself; call it something else", cut(name))
		return
	}
	inner := &scope{outer: s}
	j.fields(body, "cte", cteBodyShape, inner)
	gives := newRelation(name)
	for _, side := range inner.sides {
		j.take(gives, side, nil)
	}
	s.define(name, j.called(gives, name, texts(body, "aliases")))
}
