package sqlpolicy

import "strings"

// expression visits an expression, if it is there.
func (j *judge) expression(v any, s *scope) {
	if v == nil {
		return
	}
	o, _ := v.(object)
	j.here(o)
	class := text(o, "class")
	fields, ok := expressions[class]
	switch {
	case class == "PARAMETER":
		j.parameter(text(o, "identifier"))
		return
	case !ok:
		j.unknown("expression", o["class"])
		return
	case !types[class][text(o, "type")]:
		j.unknown("expression", o["type"])
		return
	}
	switch class {
	case "COLUMN_REF":
		j.column(texts(o, "column_names"), s)
	case "FUNCTION", "WINDOW":
		j.function(o, s)
	case "STAR":
		j.star(o, s)
	case "LAMBDA":
		s = ofLambda(o, s)
	case "SUBQUERY":
		s = &scope{outer: s}
	}
	j.fields(v, class, fields, s)
}

// ofLambda is the scope of a lambda, in which its parameters are names. The arrow of
// JSON has the same shape: what stands left of it is then no column of its own.
func ofLambda(o object, s *scope) *scope {
	left, _ := o["lhs"].(object)
	inner := &scope{outer: s, names: map[string]bool{}}
	for _, e := range append(objects(left, "children"), left) {
		if names := texts(e, "column_names"); len(names) == 1 {
			inner.names[lower(names[0])] = true
		}
	}
	return inner
}

// function looks a function up. What qualifies it may be a column: c.lower() is
// lower(c) for the engine.
func (j *judge) function(o object, s *scope) {
	name, schema, catalog := lower(text(o, "function_name")), text(o, "schema"), text(o, "catalog")
	switch {
	case !functions[name]:
		j.refuse(RuleFunction, qualified(o), "%s", noFunction(name))
	case schema == "" || catalog == "" && same(schema, "main"):
	case reserved(schema) || catalog != "" && reserved(catalog):
		j.refuse(RuleCatalog, qualified(o), "%s names a schema of the engine's own; write %s", cut(qualified(o)), name)
	case catalog != "":
		j.column([]string{catalog, schema}, s)
	default:
		j.column([]string{schema}, s)
	}
}

// qualified is the name of a function with what stands before it.
func qualified(o object) string {
	return strings.TrimLeft(text(o, "catalog")+"."+text(o, "schema")+"."+text(o, "function_name"), ".")
}
