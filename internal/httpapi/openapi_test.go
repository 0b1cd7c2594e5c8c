package httpapi_test

import (
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/httpapi"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const golden = "../../docs/openapi.json"

// TestOpenAPI: the description in the repository, which a server shows, is that
// of this code.
func TestOpenAPI(t *testing.T) {
	written, err := httpapi.Describe()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, written, 0o644); err != nil {
			t.Fatal(err)
		}
		return // the server in this test was built with the old one
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(written)); diff != "" {
		t.Errorf("docs/openapi.json is not what the routes say; run this test with -update (-file +routes):\n%.3000s", diff)
	}
	for version, shown := range map[string]string{"": "dev", "v1.2-3": "v1.2-3", `a "b"`: `a \"b\"`} {
		a := serve(t, func(c *httpapi.Config) { c.Version = version }).send("GET", "/openapi.json", "")
		if a.status != 200 || a.header.Get("Content-Type") != "application/json" {
			t.Fatalf("%d %s", a.status, a.body)
		}
		same := strings.Replace(string(want), `"version": "dev"`, `"version": "`+shown+`"`, 1)
		if diff := cmp.Diff(same, a.body); diff != "" {
			t.Errorf("version %q: a server shows something else (-want +got):\n%.3000s", version, diff)
		}
	}
}

// described reports whether the description has a status for a request.
func described(method, path string, status int) bool {
	get := strings.Replace(method, http.MethodHead, http.MethodGet, 1) // which HEAD is like
	for _, p := range operations().Paths {
		pattern := regexp.MustCompile("^" + regexp.MustCompile(`\\{[a-z]+\\}`).ReplaceAllString(regexp.QuoteMeta(p.Name), "[^/]+") + "/?$")
		if !pattern.MatchString(path) {
			continue
		}
		for _, op := range p.Value {
			has := func(r member[response]) bool { return r.Name == strconv.Itoa(status) }
			if strings.EqualFold(op.Name, get) && slices.ContainsFunc(op.Value.Responses, has) {
				return true
			}
		}
	}
	return false
}

// operations is the description of the routes, read once.
var operations = sync.OnceValue(func() (d description) {
	text, err := httpapi.Describe()
	if err != nil || json.Unmarshal(text, &d) != nil {
		return description{} // which has no answer at all
	}
	return d
})

// TestReferences: every reference in the description leads somewhere, and
// every operation has a name of its own.
func TestReferences(t *testing.T) {
	var doc struct {
		OpenAPI    string
		Paths      map[string]map[string]struct{ OperationID string }
		Components map[string]map[string]any
	}
	body := serve(t).send("GET", "/openapi.json", "").body
	if err := json.Unmarshal([]byte(body), &doc); err != nil || doc.OpenAPI != "3.1.0" {
		t.Fatalf("%q %v", doc.OpenAPI, err)
	}
	for _, part := range strings.Split(body, `"$ref": "`)[1:] {
		ref, ok := strings.CutPrefix(part[:strings.Index(part, `"`)], "#/components/")
		kind, name, _ := strings.Cut(ref, "/")
		if _, there := doc.Components[kind][name]; !ok || !there {
			t.Errorf("a reference leads to %q, which is not there", ref)
		}
	}
	names := map[string]string{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if other := names[op.OperationID]; other != "" || op.OperationID == "" {
				t.Errorf("%s %s and %s are both named %q", method, path, other, op.OperationID)
			}
			names[op.OperationID] = method + " " + path
		}
	}
}
