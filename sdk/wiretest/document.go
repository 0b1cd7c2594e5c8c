package wiretest

import (
	"encoding/json"
	"slices"
	"strings"
)

// document is what of a description is looked at.
type document struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]*schema }
}

type operation struct {
	Parameters  []parameter
	RequestBody struct{ Content contents }
	Responses   map[string]struct{ Content contents }
}

type parameter struct {
	Name, In string
	Required bool
}

type contents map[string]struct{ Schema *schema }

func (o operation) takes(in, name string) bool {
	for _, p := range o.Parameters {
		if p.In == in && strings.EqualFold(p.Name, name) {
			return true
		}
	}
	return false
}

// answer is the first success that is described, and what it may have in it.
func (o operation) answer() (status string, in contents) {
	for _, status := range []string{"101", "200", "201", "202", "204", "303"} {
		if r, ok := o.Responses[status]; ok {
			return status, r.Content
		}
	}
	return "", nil
}

type schema struct {
	Ref         string `json:"$ref"`
	Type        kinds
	Format      string
	Description string
	Encoding    string `json:"contentEncoding"`
	Properties  map[string]*schema
	Required    []string
	More        *schema `json:"additionalProperties"`
	Items       *schema
	OneOf       []*schema

	never bool // nothing fits it
}

// UnmarshalJSON takes true for a form that anything fits, and false for one that nothing does.
func (s *schema) UnmarshalJSON(text []byte) error {
	var all bool
	if json.Unmarshal(text, &all) == nil {
		s.never = !all
		return nil
	}
	type plain schema // without this method
	return json.Unmarshal(text, (*plain)(s))
}

// kinds are the types of a value, one or several.
type kinds []string

func (k *kinds) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*k = kinds{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(k))
}

// first is the type that a value has which is there.
func (k kinds) first() string {
	for _, kind := range k {
		if kind != "null" {
			return kind
		}
	}
	return ""
}

// resolved follows a reference.
func (d *document) resolved(s *schema) *schema {
	for s != nil && s.Ref != "" {
		s = d.Components.Schemas[s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]]
	}
	return s
}

// deepest bounds how far a sample goes into a form that has itself inside.
const deepest = 8

// sample is a value of a form with all that it can have. Bytes that are no text are
// not among that: they come in the place of text. Neither is a next page.
func (d *document) sample(s *schema, depth int) any {
	if s = d.resolved(s); s == nil || depth > deepest {
		return nil
	}
	if len(s.OneOf) > 0 {
		return d.sample(s.OneOf[0], depth+1)
	}
	switch s.Type.first() {
	case "string":
		if s.Format == "date-time" {
			return "2026-01-02T03:04:05Z"
		}
		return "7" // which can be read as a number, such as a mode
	case "integer":
		return 1
	case "number":
		return 1.5
	case "boolean":
		return true
	case "array":
		return []any{d.sample(s.Items, depth+1)}
	case "object":
		all := map[string]any{}
		for name, p := range s.Properties {
			if p.Encoding == "" && name != "next_cursor" {
				all[name] = d.sample(p, depth+1)
			}
		}
		if s.More != nil && !s.More.never {
			all["sample"] = d.sample(s.More, depth+1)
		}
		return all
	default:
		return nil
	}
}

// misfits says what of a value is not as its form has it.
func (d *document) misfits(s *schema, value any, at string) (all []string) {
	if s = d.resolved(s); s == nil {
		return nil
	}
	if len(s.OneOf) > 0 {
		if !slices.ContainsFunc(s.OneOf, func(one *schema) bool { return d.misfits(one, value, at) == nil }) {
			all = append(all, at+" is of no form that it may have")
		}
		return all
	}
	if kind := kindOf(value); len(s.Type) > 0 && !slices.Contains(s.Type, kind) && (kind != "integer" || !slices.Contains(s.Type, "number")) {
		return []string{at + " is of the type " + kind + " and not " + strings.Join(s.Type, " or ")}
	}
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			all = append(all, d.misfits(s.Items, one, at+"[]")...)
		}
	case map[string]any:
		for _, name := range s.Required {
			if _, ok := value[name]; !ok {
				all = append(all, at+"."+name+" is missing")
			}
		}
		for name, one := range value {
			switch p, ok := s.Properties[name]; {
			case ok:
				all = append(all, d.misfits(p, one, at+"."+name)...)
			case s.More != nil && !s.More.never:
				all = append(all, d.misfits(s.More, one, at+"."+name)...)
			default:
				all = append(all, at+"."+name+" is not described")
			}
		}
	}
	return all
}

// kindOf is the type of a value, as schemas call it.
func kindOf(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case float64:
		if value == float64(int64(value)) {
			return "integer"
		}
		return "number"
	default:
		return "object"
	}
}
