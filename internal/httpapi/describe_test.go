package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/cove-sandbox/cove/internal/wire"
)

// object is a JSON object of the description; its names come out in order.
type object map[string]any

// Describe writes the routes down as OpenAPI 3.1: the generator of what a
// server shows. It is in a test because only tests need it.
func Describe() ([]byte, error) {
	s := schemas{known: map[reflect.Type]string{}}
	s.collect(reflect.TypeFor[wire.Problem]())
	paths := map[string]object{}
	for _, r := range table() {
		at := strings.TrimSuffix(r.pattern, "{$}")
		if paths[at] == nil {
			paths[at] = object{}
		}
		paths[at][strings.ToLower(r.method)] = s.operation(r)
	}
	components, err := s.components()
	if err != nil {
		return nil, err
	}
	body, err := json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info":    object{"title": "Cove", "version": "dev", "description": "Sandboxes for code that nobody has read yet."},
		"paths":   paths,
		"components": object{"schemas": components, "responses": s.problems(), "securitySchemes": object{
			"bearer": object{"type": "http", "scheme": "bearer"},
			"key":    object{"type": "apiKey", "in": "header", "name": "X-API-Key"},
		}},
		"security": []object{{"bearer": []string{}}, {"key": []string{}}},
	}, "", "  ")
	return append(body, '\n'), err
}

var pathName = regexp.MustCompile(`\{([a-z]+)\}`)

func (s schemas) operation(r route) object {
	op := object{"summary": r.summary, "operationId": operationID(r), "parameters": parameters(r), "responses": s.responses(r)}
	content := object{}
	if r.body != nil {
		content["application/json"] = object{"schema": s.ref(r.body)}
	}
	if r.takes != "" {
		content[r.takes] = object{"schema": bodyOf(r.takes)}
	}
	if len(content) > 0 {
		op["requestBody"] = object{"content": content}
	}
	if r.open {
		op["security"] = []object{}
	}
	return op
}

// bodyOf describes a body that is not JSON.
func bodyOf(media string) object {
	octets := object{"type": "string", "format": "binary"}
	if media != formType {
		return octets
	}
	return object{"type": "object", "properties": object{
		"path": object{"type": "string", "description": "the name of the next file, below the directory of the request; left out, its filename"},
		"mode": object{"type": "string", "description": "permissions of the next file in octal"},
		"file": object{"type": "array", "items": octets, "description": "parts with a filename, under any name"},
	}}
}

func operationID(r route) string {
	var id strings.Builder
	id.WriteString(strings.ToLower(r.method))
	for _, part := range strings.FieldsFunc(r.pattern, func(c rune) bool { return strings.ContainsRune("/{}$._", c) }) {
		id.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return id.String()
}

func parameters(r route) []object {
	list := []object{}
	for _, m := range pathName.FindAllStringSubmatch(r.pattern, -1) {
		list = append(list, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, p := range r.query {
		schema := object{"type": p.kind}
		if p.kind == number {
			schema["minimum"] = p.from
			if p.to > 0 {
				schema["maximum"] = p.to
			}
		}
		if p.many {
			schema = object{"type": "array", "items": schema}
		}
		list = append(list, object{"name": p.name, "in": "query", "required": p.must, "description": p.doc, "schema": schema})
	}
	for _, h := range r.headers {
		list = append(list, object{"name": h.name, "in": "header", "required": false, "description": h.doc, "schema": object{"type": "string"}})
	}
	return list
}

func (s schemas) responses(r route) object {
	content := object{}
	if r.answer != nil {
		content["application/json"] = object{"schema": s.ref(r.answer)}
	}
	if r.gives != "" {
		content[r.gives] = object{"schema": object{"type": "string", "format": "binary"}}
	}
	good := map[int]object{r.status: content}
	all := object{"default": object{"$ref": responseRef + "Problem"}, strconv.Itoa(r.status): object{"description": http.StatusText(r.status)}}
	for _, o := range r.also {
		good[o.status] = object{"application/json": object{"schema": s.ref(o.answer)}}
		all[strconv.Itoa(o.status)] = object{"description": http.StatusText(o.status) + ": " + o.when}
	}
	if r.events != "" { // a stream begins before anybody knows how it ends
		good[http.StatusOK]["text/event-stream"] = object{"schema": object{"type": "string", "description": "events: " + r.events + ", error"}}
	}
	for status, content := range good {
		if len(content) > 0 {
			all[strconv.Itoa(status)].(object)["content"] = content
		}
	}
	if slices.ContainsFunc(r.headers, func(h header) bool { return h.name == "Range" }) {
		all["206"] = object{"description": "Partial Content: the range", "content": content}
	}
	for status, fits := range faults {
		if fits(r) {
			all[status] = object{"$ref": responseRef + "Problem" + status}
		}
	}
	return all
}

const responseRef = "#/components/responses/"

// faults are the statuses that callers must be ready for, and the routes that
// answer with them. What else can go wrong is in the code of the problem.
var faults = map[string]func(route) bool{
	"401": func(r route) bool { return !r.open },
	"413": func(r route) bool { return r.body != nil || r.takes != "" },
	"416": func(r route) bool {
		return slices.ContainsFunc(r.headers, func(h header) bool { return h.name == "Range" })
	},
	"429": func(r route) bool { return !r.open },
	"507": func(r route) bool { return slices.Contains([]string{octets, tarType, formType}, r.takes) },
}

// problems are the answers in faults, and the one for all others.
func (s schemas) problems() object {
	content := object{wire.ProblemType: object{"schema": s.ref(reflect.TypeFor[wire.Problem]())}}
	text := func(name, description string) object {
		return object{name: object{"description": description, "schema": object{"type": "string"}}}
	}
	return object{
		"Problem":    object{"description": "The platform could not do it", "content": content},
		"Problem401": object{"description": "No valid key was shown", "content": content, "headers": text("WWW-Authenticate", "Bearer")},
		"Problem413": object{"description": "The body, or a file in it, is larger than may be", "content": content},
		"Problem416": object{"description": "The range is outside of the file", "content": content, "headers": text("Content-Range", "bytes */ and the size of the file")},
		"Problem429": object{"description": "No room now, or more requests than the key may make", "content": content, "headers": text("Retry-After", "seconds")},
		"Problem507": object{"description": "The workspace has no room for the bytes or the file", "content": content},
	}
}

// Faults lists every code, and every reason with a status of its own, with the
// status and what that says.
func Faults() (codes, reasons [][3]string) {
	for code, s := range statuses {
		codes = append(codes, [3]string{string(code), strconv.Itoa(s.number), s.title})
	}
	for reason, s := range finer {
		reasons = append(reasons, [3]string{reason, strconv.Itoa(s.number), s.title})
	}
	byStatus := func(a, b [3]string) int { return strings.Compare(a[1]+a[0], b[1]+b[0]) }
	slices.SortFunc(codes, byStatus)
	slices.SortFunc(reasons, byStatus)
	return codes, reasons
}

// schemas are the structs that the routes take and give, by type.
type schemas struct{ known map[reflect.Type]string }

// special are the types that JSON schema would not guess.
func special() map[reflect.Type]*jsonschema.Schema {
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"},
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
		reflect.TypeFor[wire.Quantity]():   {Types: []string{"string", "number"}},
		reflect.TypeFor[wire.Command](): {OneOf: []*jsonschema.Schema{
			{Type: "string"}, {Type: "array", Items: &jsonschema.Schema{Type: "string"}},
		}},
	}
}

// ref notes a type and returns a reference to it.
func (s schemas) ref(t reflect.Type) object {
	s.collect(t)
	return object{"$ref": "#/components/schemas/" + s.known[t]}
}

// collect notes a struct and those in it.
func (s schemas) collect(t reflect.Type) {
	if special()[t] != nil {
		return
	}
	switch t.Kind() { //nolint:exhaustive // nothing else holds structs
	case reflect.Pointer, reflect.Slice, reflect.Map:
		s.collect(t.Elem())
	case reflect.Struct:
		if s.known[t] != "" {
			return
		}
		s.known[t] = schemaName(t)
		for f := range t.Fields() {
			s.collect(f.Type)
		}
	}
}

var typeArgument = regexp.MustCompile(`^Page\[.*\.(\w+)\]$`)

// schemaName is the name of a type; a page of sessions is a SessionPage.
func schemaName(t reflect.Type) string { return typeArgument.ReplaceAllString(t.Name(), "${1}Page") }

func (s schemas) components() (map[string]*jsonschema.Schema, error) {
	refs := special()
	for t, name := range s.known {
		refs[t] = &jsonschema.Schema{Ref: "#/components/schemas/" + name}
	}
	all := map[string]*jsonschema.Schema{}
	for t, name := range s.known {
		own := maps.Clone(refs)
		delete(own, t)
		disown(own, t)
		schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: own})
		if err != nil {
			return nil, fmt.Errorf("describe %s: %w", name, err)
		}
		if all[name] != nil {
			return nil, fmt.Errorf("describe %s: two types have this name", name)
		}
		plainRefs(schema)
		all[name] = schema
	}
	return all, nil
}

// disown takes the structs that are embedded in t out of what is known: their
// fields are t's own.
func disown(known map[reflect.Type]*jsonschema.Schema, t reflect.Type) {
	for f := range t.Fields() {
		if f.Anonymous {
			delete(known, f.Type)
			disown(known, f.Type)
		}
	}
}

// plainRefs takes back the null that the generator adds to a reference behind
// a pointer: such a field is left out instead.
func plainRefs(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Ref != "" {
		s.Types = nil
	}
	for _, p := range s.Properties {
		plainRefs(p)
	}
	plainRefs(s.Items)
	plainRefs(s.AdditionalProperties)
}
