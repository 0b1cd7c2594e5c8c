package typescript_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/docs"
	"github.com/cove-sandbox/cove/provider/providertest"
	"github.com/cove-sandbox/cove/sdk/wiretest"
)

// fewestRoutes is how many the SDK knows at least, so that a test which asks nothing fails.
const fewestRoutes = 40

// TestForms has the SDK ask all that it can ask, and compares that, and what it reads,
// with docs/openapi.json.
func TestForms(t *testing.T) {
	tree := providertest.Needs(t, "sdks", "COVE_TEST_TYPESCRIPT")
	at := wiretest.Serve(t)
	defer func() {
		for _, fault := range at.Faults() {
			t.Error(fault)
		}
	}()
	env := append(plain(t), "COVE_DESCRIBED="+at.URL)
	t.Log(run(t, env, tree, filepath.Join(tree, "bin", "node"), "--test", "--test-reporter=spec", "--test-timeout=60000", filepath.Join(tree, "build", "forms.test.js")))
	if asked := at.Asked(); len(asked) < fewestRoutes {
		t.Errorf("only %q were asked for", asked)
	}
}

// The form of a Session in an answer is the interface SessionForm, and so on.
var (
	formStart = regexp.MustCompile(`^(?:export )?interface (\w+)Form\b.*\{$`)
	formField = regexp.MustCompile(`^  (\w+)(\??): (.+);$`)
)

// TestFormTypes compares the types of answers in the source with docs/openapi.json. The
// compiler holds the rest of the source to them.
func TestFormTypes(t *testing.T) {
	described := schemas(t)
	files, err := filepath.Glob("src/*.ts")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var within string
		for line := range strings.Lines(string(text)) {
			line = strings.TrimRight(line, "\n")
			if start := formStart.FindStringSubmatch(line); start != nil {
				within = start[1]
				if described[within].Properties == nil {
					t.Errorf("%s: nothing that is described is called %s", file, within)
				}
				continue
			}
			if line == "}" {
				within = ""
			}
			field := formField.FindStringSubmatch(line)
			if within == "" || field == nil {
				continue
			}
			seen++
			if why := described[within].unlike(field[1], field[2] != "", field[3]); why != "" {
				t.Errorf("%s: %sForm.%s %s", file, within, field[1], why)
			}
		}
	}
	if seen < 60 {
		t.Errorf("only %d fields were found", seen)
	}
}

func TestUnlike(t *testing.T) {
	snapshot := schemas(t)["Snapshot"]
	for _, tt := range []struct {
		name     string
		optional bool
		kind     string
		ok       bool
	}{
		{"name", true, "string", true},
		{"name", false, "string", false},
		{"size_bytes", false, "number", true},
		{"size_bytes", true, "number", true},
		{"size_bytes", false, "string", false},
		{"size", false, "number", false},
	} {
		if why := snapshot.unlike(tt.name, tt.optional, tt.kind); (why == "") != tt.ok {
			t.Errorf("%+v: %q", tt, why)
		}
	}
}

type schema struct {
	Properties map[string]struct{ Type json.RawMessage }
	Required   []string
}

// unlike says how a field of ours is not as the description has it, or nothing.
func (s schema) unlike(name string, optional bool, ours string) string {
	p, ok := s.Properties[name]
	switch {
	case !ok:
		return "is not described"
	case !optional && !slices.Contains(s.Required, name):
		return "may be left out"
	case meant(ours) != kindOf(string(p.Type)):
		return "is of the type " + kindOf(string(p.Type)) + " and not " + ours
	default:
		return ""
	}
}

// kindOf is the type of a property in the words of TypeScript.
func kindOf(described string) string {
	switch has := func(word string) bool { return strings.Contains(described, `"`+word+`"`) }; {
	case has("string"):
		return "string"
	case has("integer"), has("number"):
		return "number"
	case has("boolean"):
		return "boolean"
	case has("array"):
		return "array"
	default:
		return "object"
	}
}

// meant is the type of a field in the source: what is neither plain, nor a list, nor
// one of some words, is an object.
func meant(ours string) string {
	switch ours = strings.TrimSuffix(ours, " | null"); {
	case ours == "string", ours == "number", ours == "boolean":
		return ours
	case strings.HasSuffix(ours, "[]"):
		return "array"
	case strings.HasPrefix(ours, `"`), strings.HasSuffix(ours, `"]`), ours == "Outcome":
		return "string"
	default:
		return "object"
	}
}

func schemas(t *testing.T) map[string]schema {
	t.Helper()
	var doc struct {
		Components struct{ Schemas map[string]schema }
	}
	if err := json.Unmarshal([]byte(docs.OpenAPI()), &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Components.Schemas
}
