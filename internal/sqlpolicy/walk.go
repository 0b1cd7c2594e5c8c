package sqlpolicy

import (
	"encoding/json"
	"strconv"
)

// object is a node of a tree, or a part of one.
type object = map[string]any

// walk visits what a field of this name holds, and refuses what it should not hold.
func (j *judge) walk(p part, name string, v any, s *scope) {
	if j.refusal != nil {
		return
	}
	defer func(at int) { j.depth--; j.at = at }(j.at)
	if j.depth++; j.depth > maxDepth {
		j.refuse(RuleSize, "", "the statement is nested deeper than %d levels", maxDepth)
		return
	}
	switch p {
	case plain:
		j.plain(name, v)
	case word:
		if text, ok := v.(string); !ok || !words[name][text] {
			j.unknown(name, v)
		}
	case nothing:
		j.nothing(name, v)
	case expr:
		j.expression(v, s)
	case statement:
		if o, _ := v.(object); o["node"] == nil {
			j.unknown(name, nil)
		}
		j.fields(v, name, statementShape, s)
	case node:
		j.subquery(name, v, s)
	case tableRef:
		j.table(v, s)
	case ctes:
		j.with(v, s)
	case constant:
		j.fields(v, name, constantShape, s)
	case modifiers:
		j.each(modifier, name, v, s.ofModifiers())
	case modifier:
		j.kind(v, name, modifierKinds, s)
	case order:
		j.kind(v, name, orderKinds, &scope{outer: s}) // the star of ORDER BY ALL is not that of FROM
	case typeInfo:
		j.kind(v, name, typeInfos, s)
	case exprs, exprLists, orders, constants, dataTypes, fieldTypes, cases, replaces, renames, columnNames, pivots, pivotValues:
		j.each(entries[p], name, v, s)
	case sample, dataType, fieldType, oneCase, replace, rename, columnName, pivot, pivotValue:
		j.bare(v, name, shapes[p], s)
	}
}

// entries says what the entries of a list are.
var entries = map[part]part{
	exprs: expr, exprLists: exprs, orders: order, constants: constant, dataTypes: dataType, fieldTypes: fieldType,
	cases: oneCase, replaces: replace, renames: rename, columnNames: columnName, pivots: pivot, pivotValues: pivotValue,
}

// shapes are those of nodes that have no kind.
var shapes = map[part]shape{
	sample: sampleShape, dataType: typeShape, fieldType: fieldShape, oneCase: caseShape,
	replace: replaceShape, rename: renameShape, columnName: nameShape, pivot: pivotShape, pivotValue: entryShape,
}

// each visits the entries of a list.
func (j *judge) each(p part, name string, v any, s *scope) {
	list, ok := v.([]any)
	if !ok && v != nil {
		j.unknown(name, v)
	}
	for _, e := range list {
		j.walk(p, name, e, s)
	}
}

// bare visits a node that has no kind, if it is there.
func (j *judge) bare(v any, name string, fields shape, s *scope) {
	if v != nil {
		j.fields(v, name, fields, s)
	}
}

// kind visits a node by its kind, which its type says, if it is there.
func (j *judge) kind(v any, name string, kinds map[string]shape, s *scope) {
	if v == nil {
		return
	}
	o, _ := v.(object)
	fields, ok := kinds[text(o, "type")]
	if !ok {
		j.unknown(name, o["type"])
		return
	}
	j.fields(v, name, fields, s)
}

// fields visits the fields of a node, which must have no others.
func (j *judge) fields(v any, name string, fields shape, s *scope) {
	if j.nodes++; j.nodes > maxNodes {
		j.refuse(RuleSize, "", tooLarge)
		return
	}
	o, ok := v.(object)
	if !ok {
		j.unknown(name, v)
		return
	}
	there := 0
	for _, f := range fields {
		if _, ok := o[f.name]; ok {
			there++
		}
	}
	if there != len(o) {
		for key := range o {
			if !fields.has(key) {
				j.unknown(name+"."+key, nil)
				return
			}
		}
	}
	for _, f := range fields {
		if value, ok := o[f.name]; ok {
			j.walk(f.holds, f.name, value, s)
		}
	}
}

func (s shape) has(name string) bool {
	for _, f := range s {
		if f.name == name {
			return true
		}
	}
	return false
}

// plain refuses what could hold a node. A value of a constant may have parts.
func (j *judge) plain(name string, v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			j.walk(plain, name, e, nil)
		}
	case object:
		for key, e := range v {
			switch {
			case name == "value" && (key == "upper" || key == "lower"):
				j.walk(plain, key, e, nil)
			case name == "value" && key == "children":
				j.walk(constants, key, e, nil)
			default:
				j.unknown(name+"."+key, nil)
			}
		}
	}
}

// nothing refuses a field that must be empty, by what it means.
func (j *judge) nothing(name string, v any) {
	switch v := v.(type) {
	case nil:
		return
	case bool:
		if !v {
			return
		}
	case string:
		if v == "" {
			return
		}
	case []any:
		if len(v) == 0 {
			return
		}
	}
	switch name {
	case "named_param_map":
		j.parameter("")
	case "at_clause":
		j.refuse(RuleNode, "AT", "AT asks for an earlier state of a table, and there is none")
	case "export_state":
		j.refuse(RuleNode, "EXPORT_STATE", "EXPORT_STATE is not on the list of what a statement may have")
	case "pivot_enum":
		j.refuse(RuleNode, toText(v), "there is no type %s; list the values behind IN", cut(toText(v)))
	case "catalog", "schema":
		j.refuse(RuleNode, toText(v), "there is no schema %s with types; a type has a name alone", cut(toText(v)))
	default:
		j.unknown(name, v)
	}
}

// parameter refuses a place for a value. The parser calls the n-th question mark n.
func (j *judge) parameter(name string) {
	j.refuse(RuleParameter, j.written("$"+name, "?"), "the statement has a place for a value, and a run has no values to put there; write the value itself")
}

// unknown refuses what is not in the vocabulary.
func (j *judge) unknown(name string, v any) {
	about := toText(v)
	if about == "" {
		about = name
	}
	j.refuse(RuleNode, about, "the statement has a part that is not on the list of what it may have: %s", cut(about))
}

// here moves to where the node begins, if it says so.
func (j *judge) here(o object) {
	n, _ := o["query_location"].(json.Number)
	if at, err := strconv.ParseUint(n.String(), 10, 64); err == nil && at < uint64(len(j.sql)) {
		j.at = int(at) //nolint:gosec // it is below the length of the text
	}
}

func text(o object, name string) string { return toText(o[name]) }

func toText(v any) string {
	s, _ := v.(string)
	return s
}

// texts returns the texts of a list.
func texts(o object, name string) []string {
	list, _ := o[name].([]any)
	out := make([]string, 0, len(list))
	for _, e := range list {
		out = append(out, toText(e))
	}
	return out
}

func objects(o object, name string) []object {
	list, _ := o[name].([]any)
	out := make([]object, 0, len(list))
	for _, e := range list {
		if entry, ok := e.(object); ok {
			out = append(out, entry)
		}
	}
	return out
}
