package sqlpolicy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// table visits what stands in FROM, and brings it into scope.
func (j *judge) table(v any, s *scope) {
	o, ok := v.(object)
	if !ok {
		j.unknown("from_table", v)
		return
	}
	j.here(o)
	inner, before := s, len(s.from)
	switch text(o, "type") {
	case "BASE_TABLE":
		j.base(o, s)
	case "TABLE_FUNCTION":
		j.tableFunction(o, s)
		return
	case "SHOW_REF":
		if o["query"] == nil {
			j.refuse(RuleCatalog, j.written("SHOW", "DESCRIBE", "DESC"), "the statement lists what the engine holds; ask for the schema of a dataset instead")
		}
		inner = &scope{outer: s}
	case "SUBQUERY", "PIVOT":
		inner = &scope{outer: s}
	}
	j.kind(v, "from_table", tables, inner)
	s.from = append(s.from, j.derived(o, inner, s.from[before:])...)
	j.using(o, s.from[before:])
}

// derived returns what a node in FROM brings besides what its parts have brought.
func (j *judge) derived(o object, inner *scope, parts []*relation) []*relation {
	alias := text(o, "alias")
	out := newRelation(alias)
	switch text(o, "type") {
	case "SUBQUERY":
		for _, side := range inner.sides {
			j.take(out, side, nil)
		}
		return []*relation{j.called(out, alias, texts(o, "column_name_alias"))}
	case "SHOW_REF", "PIVOT":
		out.open = true
	case "EXPRESSION_LIST":
		rows, _ := o["values"].([]any)
		if len(rows) > 0 {
			row, _ := rows[0].([]any)
			for i := range row {
				out.columns["col"+strconv.Itoa(i)] = origin{}
			}
		}
	case "JOIN":
		if alias == "" {
			return nil
		}
		for _, r := range parts {
			j.take(out, r, nil)
		}
	default:
		return nil
	}
	return []*relation{out}
}

// base looks a table up: a common table expression first, then what the grant shows.
func (j *judge) base(o object, s *scope) {
	catalog, dataset, name := text(o, "catalog_name"), text(o, "schema_name"), text(o, "table_name")
	full := strings.TrimLeft(catalog+"."+dataset+"."+name, ".")
	alias, columns := text(o, "alias"), texts(o, "column_name_alias")
	if catalog == "" && (dataset == "" || same(dataset, "recurring")) {
		if r := s.cte(name); r != nil {
			s.from = append(s.from, j.called(r, or(alias, name), columns))
			return
		}
	}
	if catalog != "" || reserved(dataset) && !same(dataset, "main") {
		j.refuse(RuleCatalog, full, "%s is outside of the datasets; write dataset.table", cut(full))
		return
	}
	t, ok := j.shown.find(dataset, name)
	switch {
	case engines(name) && (!ok || dataset == ""): // without a dataset, the engine finds its own one day
		j.refuse(RuleCatalog, full, "%s is the engine's own; ask for the schema of a dataset instead", cut(full))
		return
	case !ok:
		j.refuse(RuleTable, full, "%s", j.noTable(full, name))
		return
	}
	r := j.relation(t)
	if alias != "" || len(columns) > 0 {
		r = j.called(r, alias, columns)
	}
	s.from = append(s.from, r)
}

// relation is a table as the grant shows it.
func (j *judge) relation(t Table) *relation {
	if r := j.relations[lower(t.String())]; r != nil {
		return r
	}
	used := &use{table: t, columns: map[string]bool{}}
	j.used[lower(t.String())] = used
	r := newRelation(t.Name)
	j.relations[lower(t.String())] = r
	r.dataset = lower(t.Dataset)
	r.open = t.Columns == nil
	for _, c := range t.Columns {
		r.columns[lower(c)] = origin{use: used, column: c}
	}
	whole, _ := j.all.find(or(t.Dataset, "main"), t.Name)
	if whole.Columns == nil && t.Columns != nil {
		r.bounded = &t
	}
	for _, c := range whole.Columns {
		if _, shown := r.columns[lower(c)]; !shown {
			r.denied[lower(c)] = t
		}
	}
	return r
}

// noTable says that there is no such table, and which there are.
func (j *judge) noTable(full, name string) string {
	if strings.ContainsAny(name, `/\`) {
		return "a statement opens no file; ask the tables of a dataset"
	}
	if dataset, table, dotted := strings.Cut(name, "."); dotted {
		if _, ok := j.shown.find(dataset, table); ok {
			return fmt.Sprintf("%s in one pair of quotes is one name; write it without them", cut(name))
		}
	}
	const most = 8
	var there []string
	for _, t := range j.shown.Tables {
		if t.Dataset == "" && j.shown.Dataset != "" {
			t.Dataset = "main"
		}
		there = append(there, t.String())
	}
	slices.Sort(there)
	switch n := len(there); {
	case n == 0:
		return fmt.Sprintf("there is no table %s, and no other", cut(full))
	case n > most:
		return fmt.Sprintf("there is no table %s; there are %s and %d more", cut(full), strings.Join(there[:most], ", "), n-most)
	default:
		return fmt.Sprintf("there is no table %s; there are %s", cut(full), strings.Join(there, ", "))
	}
}

// using refuses columns behind USING that only what is not granted has.
func (j *judge) using(o object, parts []*relation) {
	for _, name := range texts(o, "using_columns") {
		for _, r := range parts {
			if _, ok := r.columns[lower(name)]; ok || r.open {
				continue
			}
			if t, ok := r.hidden(lower(name)); ok {
				j.denied(name, t)
			}
		}
	}
}

// tableFunction visits a function in FROM. It is looked up in a list of its own.
func (j *judge) tableFunction(o object, s *scope) {
	call, _ := o["function"].(object)
	if text(call, "class") != "FUNCTION" || text(call, "type") != "FUNCTION" {
		j.unknown("function", call["class"])
		return
	}
	name := lower(text(call, "function_name"))
	gives, ok := tableFunctions[name]
	if !ok || text(call, "schema") != "" && !same(text(call, "schema"), "main") || text(call, "catalog") != "" {
		j.refuse(RuleTableFunction, qualified(call), "%s", noTableFunction(name))
		return
	}
	j.fields(call, "function", expressions["FUNCTION"], s)
	rest := maps.Clone(o)
	delete(rest, "function")
	j.fields(rest, "from_table", tables["TABLE_FUNCTION"], s)
	r := newRelation(name)
	for _, c := range append(slices.Clone(gives), "ordinality") {
		r.columns[c] = origin{}
	}
	s.from = append(s.from, j.called(r, text(o, "alias"), texts(o, "column_name_alias")))
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
