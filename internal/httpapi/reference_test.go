package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/httpapi"
)

const reference = "../../docs/http.md"

// Between these lines the reference is made from the description of the routes;
// the rest is written by hand.
const (
	generatedFrom = "<!-- Made from openapi.json by go test ./internal/httpapi -update. -->\n"
	generatedTo   = "<!-- The end of what is made. -->\n"
)

// TestReference: docs/http.md shows the routes and bodies of docs/openapi.json.
func TestReference(t *testing.T) {
	described, err := httpapi.Describe()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), generatedFrom)
	_, after, ended := strings.Cut(rest, generatedTo)
	if !ok || !ended {
		t.Fatalf("docs/http.md lacks the line %q or %q", generatedFrom, generatedTo)
	}
	want := before + generatedFrom + tables(t, described) + generatedTo + after
	if *update {
		if err := os.WriteFile(reference, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("docs/http.md is old; run this test with -update (-want +file):\n%.3000s", diff)
	}
}

// description is what the reference needs of OpenAPI.
type description struct {
	Paths      ordered[ordered[operation]]
	Components struct{ Schemas ordered[schema] }
}

type operation struct {
	Summary     string
	Parameters  []parameter
	RequestBody struct {
		Content ordered[struct{ Schema schema }]
	}
	Responses ordered[response]
	Security  *[]any
}

type response struct {
	Description string
	Content     ordered[struct{ Schema schema }]
}

type parameter struct {
	Name, In, Description string
	Required              bool
}

type schema struct {
	Ref                  string `json:"$ref"`
	Type                 any
	Description          string
	Properties           ordered[schema]
	Required             []string
	Items                *schema
	AdditionalProperties any
	OneOf                []schema
}

// UnmarshalJSON implements [json.Unmarshaler]. A schema may also be true, for
// anything.
func (s *schema) UnmarshalJSON(data []byte) error {
	if string(data) == "true" {
		return nil
	}
	type plain schema
	return json.Unmarshal(data, (*plain)(s))
}

// ordered is an object whose names keep their order.
type ordered[T any] []member[T]

type member[T any] struct {
	Name  string
	Value T
}

// UnmarshalJSON implements [json.Unmarshaler].
func (o *ordered[T]) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		n := member[T]{Name: fmt.Sprint(name)}
		if err := d.Decode(&n.Value); err != nil {
			return err
		}
		*o = append(*o, n)
	}
	return nil
}

// areas are the parts of the reference, and the paths of each; the first that
// fits counts.
var areas = []struct {
	title string
	paths *regexp.Regexp
}{
	{"Sessions, their life and their numbers", regexp.MustCompile(`^/api/sandboxes(/\{id\}(/(renew|start|stop|pause|resume|stats|fork|snapshot))?)?$|^/api/snapshots|^/api/named-volumes`)},
	{"Programs and what they print", regexp.MustCompile(`/(execute|processes|output|terminal)\b`)},
	{"Code that remembers", regexp.MustCompile(`/(code|contexts)\b|/run_python_code$`)},
	{"Files of a session", regexp.MustCompile(`/(files|archive|upload)\b`)},
	{"Ways in and out of a session", regexp.MustCompile(`/(network|connections|ports)\b`)},
	{"Programs on trial", regexp.MustCompile(`/trial\b`)},
	{"Questions to data", regexp.MustCompile(`^/api/(runs|datasets|chat|threads)`)},
	{"Keys, tenants and the journal", regexp.MustCompile(`^/api/(keys|tenants|events)`)},
	{"Looking after the platform", regexp.MustCompile(`^/api/(stats|doctor|nodes|volumes|templates|analyze|verify|maintenance)`)},
	{"Without a key", regexp.MustCompile(`^/(health|ready|api/v1/health)?$`)},
	{"Everything else", regexp.MustCompile(``)},
}

// tables writes the routes by area, and then the bodies.
func tables(t *testing.T, described []byte) string {
	t.Helper()
	var d description
	if err := json.Unmarshal(described, &d); err != nil {
		t.Fatal(err)
	}
	rows := make([]string, len(areas))
	for _, p := range d.Paths {
		area := 0
		for !areas[area].paths.MatchString(p.Name) {
			area++
		}
		for _, op := range p.Value {
			rows[area] += row(strings.ToUpper(op.Name)+" "+p.Name, op.Value)
		}
	}
	var out strings.Builder
	out.WriteString("\n## Codes\n\n| code | status | says |\n|---|---|---|\n")
	codes, reasons := httpapi.Faults()
	for _, c := range codes {
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", c[0], c[1], c[2])
	}
	out.WriteString("\nThese reasons have a status of their own:\n\n| reason | status | says |\n|---|---|---|\n")
	for _, r := range reasons {
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", r[0], r[1], r[2])
	}
	out.WriteString("\n## Routes\n\nWhat stands in parentheses can be left out; `?` is for the query, and headers have their own names.\n")
	for i, area := range areas {
		if rows[i] != "" {
			fmt.Fprintf(&out, "\n### %s\n\n| route | what it does | takes | answers |\n|---|---|---|---|\n%s", area.title, rows[i])
		}
	}
	out.WriteString("\n## Bodies\n\nFields that can be left out stand in parentheses.\n")
	for _, s := range d.Components.Schemas {
		fmt.Fprintf(&out, "\n### %s\n\n| field | type | meaning |\n|---|---|---|\n", s.Name)
		for _, p := range s.Value.Properties {
			name := "`" + p.Name + "`"
			if !slices.Contains(s.Value.Required, p.Name) {
				name = "(" + name + ")"
			}
			fmt.Fprintf(&out, "| %s | %s | %s |\n", name, p.Value.kind(), cell(p.Value.Description))
		}
	}
	out.WriteString("\n")
	return out.String()
}

func row(route string, op operation) string {
	var takes, gives []string
	for _, p := range op.Parameters {
		name := map[string]string{"query": "`?" + p.Name + "`", "header": "`" + p.Name + ":`", "path": ""}[p.In]
		if name == "" {
			continue
		}
		if p.Description != "" {
			name += " " + cell(p.Description)
		}
		if !p.Required {
			name = "(" + name + ")"
		}
		takes = append(takes, name)
	}
	for _, c := range op.RequestBody.Content {
		takes = append(takes, media(c.Name, c.Value.Schema))
	}
	for _, r := range op.Responses {
		if r.Name >= "4" {
			continue
		}
		var bodies []string
		for _, c := range r.Value.Content {
			bodies = append(bodies, media(c.Name, c.Value.Schema))
		}
		answer := r.Name
		if _, when, ok := strings.Cut(r.Value.Description, ": "); ok {
			answer += ", " + cell(when) + ":"
		}
		gives = append(gives, strings.TrimSpace(answer+" "+strings.Join(bodies, " or ")))
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", route, cell(op.Summary), strings.Join(takes, "<br>"), strings.Join(gives, "<br>"))
}

// media names a body: its form for JSON, and what is in it for others.
func media(name string, s schema) string {
	switch {
	case s.Ref != "":
		return s.kind()
	case name == "text/event-stream":
		return "events: " + cell(strings.TrimPrefix(s.Description, "events: "))
	}
	return "`" + name + "`"
}

// kind is the type of a value in the words of JSON, with a link to a form.
func (s schema) kind() string {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return "[" + name + "](#" + strings.ToLower(name) + ")"
	}
	if len(s.OneOf) > 0 {
		var kinds []string
		for _, o := range s.OneOf {
			kinds = append(kinds, o.kind())
		}
		return strings.Join(kinds, " or ")
	}
	var words []string
	switch t := s.Type.(type) {
	case string:
		words = []string{t}
	case []any:
		for _, w := range t {
			if w != "null" {
				words = append(words, fmt.Sprint(w))
			}
		}
	}
	text := strings.Join(words, " or ")
	switch {
	case text == "":
		return "any"
	case s.Items != nil && text == "array":
		return "list of " + s.Items.kind()
	}
	return text
}

// cell makes a text fit for a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }
