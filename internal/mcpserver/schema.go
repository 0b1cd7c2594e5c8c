package mcpserver

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// inputSchema is the schema of what a tool takes.
func inputSchema[T any]() *jsonschema.Schema { return plain(infer[T]()) }

// outputSchema is the schema of what a tool gives: its value, or an error alone. So
// it demands nothing.
func outputSchema[T any]() *jsonschema.Schema {
	s := plain(infer[T]())
	s.Properties["error"] = plain(infer[fault]())
	s.Properties["error"].Description = "what went wrong; then there is nothing else"
	s.PropertyOrder = append(s.PropertyOrder, "error")
	s.Required = nil
	return s
}

// infer panics for a type that has no schema: a fault in this package that shows
// when the first server is made.
func infer[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {Type: "array"}, // a row
	}})
	if err != nil {
		panic(err) //nolint:forbidigo // a mistake in a type of this package, as the SDK takes it
	}
	return s
}

// plain gives every value one type, since not every client takes a list of them:
// what has no value is left out, and a list of nothing is an empty one.
func plain(s *jsonschema.Schema) *jsonschema.Schema {
	if i := slices.Index(s.Types, "null"); i >= 0 && len(s.Types) == 2 {
		s.Type, s.Types = s.Types[1-i], nil
	}
	for _, p := range s.Properties {
		plain(p)
	}
	if s.Items != nil {
		plain(s.Items)
	}
	return s
}

// inJSON writes what a model reads: as it is, since nobody shows it as HTML.
func inJSON(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "{}" // what tools answer with can always be written
	}
	return strings.TrimSuffix(b.String(), "\n")
}
