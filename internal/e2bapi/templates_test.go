package e2bapi_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/e2bapi"
	"github.com/cove-sandbox/cove/provider/fake"
)

// rack keeps templates in memory, all of them ready.
type rack struct {
	mu    sync.Mutex
	names map[string]string // guarded by mu
	built map[string]string // guarded by mu; the files of the last build
}

func (s *rack) Templates(context.Context) ([]cove.Template, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []cove.Template{{Name: "broken", Why: "it is not built"}}
	for name, digest := range s.names {
		all = append(all, cove.Template{Name: name, Digest: digest, Ready: true, CreatedAt: time.Unix(1e9, 0).UTC()})
	}
	return all, nil
}

func (s *rack) HasTemplate(name string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.names[name]
	return ok, nil
}

func (s *rack) BuildTemplate(_ context.Context, req cove.TemplateRequest) (*cove.Template, error) {
	files := map[string]string{}
	for in := tar.NewReader(req.Files); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		files[h.Name] = string(data)
	}
	req.OnOutput(cove.Chunk{Data: []byte("Step 1\nStep")})
	req.OnOutput(cove.Chunk{Data: []byte(" 2")})
	if strings.HasSuffix(req.Name, "/bad") {
		return nil, cove.Errorf(cove.Invalid, "it cannot be built")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.built, s.names[req.Name] = files, "built"
	return &cove.Template{Name: req.Name}, nil
}

func (s *rack) TagTemplate(_ context.Context, name, as string) (*cove.Template, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[as] = s.names[name]
	return &cove.Template{Name: as}, nil
}

func (s *rack) RemoveTemplate(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.names[name]; !ok {
		return cove.Errorf(cove.NotFound, "there is no template %s", name)
	}
	delete(s.names, name)
	return nil
}

// templateCall makes a call of the control API.
func (r *rig) templateCall(method, path, body string) (int, string) {
	r.t.Helper()
	return r.callAs(goodKey, method, path, body)
}

// callAs makes a call of the control API with a key.
func (r *rig) callAs(key, method, path, body string) (int, string) {
	r.t.Helper()
	req := must(http.NewRequestWithContext(r.t.Context(), method, r.server.URL+path, strings.NewReader(body)))(r.t)
	req.Header.Set("X-Api-Key", key)
	status, text, _ := r.read(req)
	return status, text
}

func TestTemplates(t *testing.T) {
	kept := &rack{names: map[string]string{"web": strings.Repeat("ab", 32)}}
	r := serveWith(t, rigOptions{engine: func(c *engine.Config) { c.Templates = kept }})
	const build = `"buildID":"abababababababababababababababab"`
	for _, c := range []struct {
		method, path, body string
		status             int
		holds              string
	}{
		{"GET", "/templates", "", 200, `"templateID":"web"`},
		{"GET", "/v2/templates", "", 200, `"templateID":"base"`},
		{"GET", "/templates/web", "", 200, build},
		{"GET", "/templates/broken", "", 404, "there is no template"},
		{"GET", "/templates/aliases/web", "", 200, `{"templateID":"web","public":true}`},
		{"GET", "/templates/aliases/base", "", 200, `{"templateID":"base","public":true}`},
		{"GET", "/templates/aliases/code-interpreter-v1", "", 200, `"public":true`},
		{"GET", "/templates/aliases/none", "", 404, "none"},
		{"GET", "/templates/web/other", "", 404, "there is no GET"},
		{"POST", "/templates/tags", `{"target":"web","tags":["v1","v2"]}`, 201, build},
		{"GET", "/templates/aliases/web:v1", "", 200, `{"templateID":"web.v1","public":false}`},
		{"DELETE", "/templates/web", "", 409, "shared with all tenants"},
		{"GET", "/templates/aliases/web:latest", "", 200, `"templateID":"web"`},
		{"DELETE", "/templates/tags", `{"name":"web","tags":["v2"]}`, 204, ""},
		{"DELETE", "/templates/tags", `{"name":"web","tags":["v2"]}`, 404, ""},
		{"POST", "/templates/tags", `{"target":"none","tags":["v1"]}`, 404, "none"},
		{"POST", "/templates/tags", `{"target":"web","tags":[]}`, 400, "tags"},
		{"POST", "/templates/tags", `{"target":"web","tags":["A b"]}`, 400, "cannot be a tag"},
		{"POST", "/templates/tags", `{"target":"web","tags":["latest"]}`, 400, "without a tag"},
		{"POST", "/templates/tags", `{`, 400, "JSON"},
		{"DELETE", "/templates/tags", `[]`, 400, "JSON"},
		{"DELETE", "/templates/tags", `{"name":"web"}`, 400, "tags"},
		{"POST", "/v3/templates", `{"name":"web"}`, 409, "shared with all tenants"},
		{"POST", "/v3/templates", `{"name":"A b"}`, 400, "template"},
		{"POST", "/v3/templates", `{"name":"a","tags":["A b"]}`, 400, "cannot be a tag"},
		{"POST", "/v2/templates/a/builds/b", `{}`, 404, "there is no build"},
		{"GET", "/templates/a/builds/b/status", "", 404, "there is no build"},
		{"GET", "/templates/a/files/0123456789abcdef", "", 404, "no build"},
		{"PUT", "/templates/a/upload/b/0123456789abcdef", "", 401, "not one for these files"},
	} {
		if status, text := r.templateCall(c.method, c.path, c.body); status != c.status || !strings.Contains(text, c.holds) {
			t.Errorf("%s %s %s answered %d %s, want %d with %q", c.method, c.path, c.body, status, text, c.status, c.holds)
		}
	}
	var tags []struct{ Tag string }
	if status, text := r.templateCall("GET", "/templates/web/tags", ""); status != 200 || json.Unmarshal([]byte(text), &tags) != nil {
		t.Fatalf("answered %d %s", status, text)
	}
	if diff := cmp.Diff([]struct{ Tag string }{{"default"}, {"v1"}}, tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	for _, want := range []int{204, 404} {
		if status, text := r.templateCall("DELETE", "/templates/web:v1", ""); status != want {
			t.Errorf("answered %d %s, want %d", status, text, want)
		}
	}
}

// begun begins a build and returns its id.
func (r *rig) begun(body string) string {
	r.t.Helper()
	return r.begunBy(goodKey, body)
}

func (r *rig) begunBy(key, body string) string {
	r.t.Helper()
	var made struct{ BuildID string }
	if status, text := r.callAs(key, "POST", "/v3/templates", body); status != 202 || json.Unmarshal([]byte(text), &made) != nil {
		r.t.Fatalf("%s answered %d %s", body, status, text)
	}
	return made.BuildID
}

// buildEnd is how a build ended.
type buildEnd struct {
	Status string
	Logs   []string
	Reason struct{ Message string }
}

// ended waits for the end of a build.
func (r *rig) ended(name, id string) (end buildEnd) {
	r.t.Helper()
	return r.endedBy(goodKey, name, id)
}

func (r *rig) endedBy(key, name, id string) (end buildEnd) {
	r.t.Helper()
	for end.Status != "ready" && end.Status != "error" {
		if status, text := r.callAs(key, "GET", "/templates/"+name+"/builds/"+id+"/status?logsOffset=0", ""); status != 200 || json.Unmarshal([]byte(text), &end) != nil {
			r.t.Fatalf("answered %d %s", status, text)
		}
	}
	return end
}

// TestUploadLinks: a link to send files to leads to where the client comes from, also
// through a proxy that has TLS where we have none.
func TestUploadLinks(t *testing.T) {
	const path = "/templates/app/files/0123456789abcdef0123"
	public := must(url.Parse("https://cove.example.com/behind"))(t)
	for name, c := range map[string]struct {
		options rigOptions
		host    string
		want    string
	}{
		"plain":          {rigOptions{}, "box.example:8000", "http://box.example:8000/templates/app/upload/"},
		"TLS":            {rigOptions{http2: true}, "box.example:8000", "https://box.example:8000/templates/app/upload/"},
		"public":         {rigOptions{face: func(c *e2bapi.Config) { c.Public = public }}, "127.0.0.1:8000", "https://cove.example.com/behind/templates/app/upload/"},
		"domain":         {rigOptions{face: func(c *e2bapi.Config) { c.Domain, c.Public = "d.example:8443", public }}, "api.d.example:8443", "https://api.d.example:8443/templates/app/upload/"},
		"not the domain": {rigOptions{face: func(c *e2bapi.Config) { c.Domain = "d.example" }}, "box.example", "http://box.example/templates/app/upload/"},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.engine = func(c *engine.Config) { c.Templates = &rack{names: map[string]string{}} }
			r := serveWith(t, c.options)
			r.begun(`{"alias":"app"}`)
			req := r.ask("GET", path, "", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "evil.example")
			req.Host = c.host
			status, text, _ := r.read(req)
			var link struct{ URL string }
			if status != 201 || json.Unmarshal([]byte(text), &link) != nil || !strings.HasPrefix(link.URL, c.want) || !strings.Contains(link.URL, "?token=") {
				t.Errorf("answered %d %s; want %s", status, text, c.want)
			}
		})
	}
	if public.String() != "https://cove.example.com/behind" {
		t.Errorf("a link changed the setting to %s", public)
	}
}

func TestTemplateBuild(t *testing.T) {
	kept := &rack{names: map[string]string{}}
	r := serveWith(t, rigOptions{engine: func(c *engine.Config) { c.Templates = kept }})
	id := r.begun(`{"alias":"app","tags":["v1","latest"]}`)
	const hash = "0123456789abcdef0123"
	var link struct{ URL string }
	if status, text := r.templateCall("GET", "/templates/app/files/"+hash, ""); status != 201 || json.Unmarshal([]byte(text), &link) != nil {
		t.Fatalf("answered %d %s", status, text)
	}
	at := "/v2/templates/app/builds/" + id
	steps := fmt.Sprintf(`{"fromImage":"e2bdev/base","steps":[{"type":"COPY","args":["src/a","/app/","user","0644"],"filesHash":"%s"},
		{"type":"RUN","args":["echo \"$A\"\nls","root"]},{"type":"USER","args":["user"]},{"type":"RUN","args":["id","root"]},
		{"type":"ENV","args":["A","b $c\"\\"]},{"type":"WORKDIR","args":["/app"]}]}`, hash)
	if status, text := r.templateCall("POST", at, steps); status != 400 || !strings.Contains(text, "no files that were sent") {
		t.Errorf("without its files it answered %d %s", status, text)
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	files := tar.NewWriter(zip)
	for _, h := range []tar.Header{{Name: "src/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "src/a", Typeflag: tar.TypeReg, Size: 2, Mode: 0o644}, {Name: "../../up", Typeflag: tar.TypeReg, Size: 2}, {Name: "dev", Typeflag: tar.TypeChar}} {
		if err := files.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			_, _ = files.Write([]byte("hi"))
		}
	}
	if err := errors.Join(files.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	put := must(http.NewRequestWithContext(t.Context(), http.MethodPut, link.URL, &packed))(t)
	if status, text, _ := r.read(put); status != 200 {
		t.Fatalf("answered %d %s", status, text)
	}
	if status, text := r.templateCall("POST", at, steps); status != 202 {
		t.Fatalf("answered %d %s", status, text)
	}
	if status, text := r.templateCall("POST", at, steps); status != 409 {
		t.Errorf("a second time it answered %d %s", status, text)
	}
	if end := r.ended("app", id); end.Status != "ready" || strings.Join(end.Logs, ",") != "Step 1,Step 2" {
		t.Errorf("it ended as %+v", end)
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	want := map[string]string{
		"Dockerfile": "FROM cove-sandbox:latest\nUSER root\n" + `COPY --chown=user --chmod=0644 ["files/0123456789abcdef0123/src/a","/app/"]` + "\n" +
			`RUN ["/bin/bash","-c","echo \"$A\"\nls"]` + "\nUSER user\nUSER root\n" + `RUN ["/bin/bash","-c","id"]` + "\nUSER user\n" +
			`ENV A="b \$c\"\\"` + "\nWORKDIR /app\n",
		"files/" + hash + "/src": "", "files/" + hash + "/src/a": "hi", "files/" + hash + "/up": "hi",
	}
	if diff := cmp.Diff(want, kept.built); diff != "" {
		t.Errorf("it was built from (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"acme/app": "built", "acme/app.v1": "built"}, kept.names); diff != "" {
		t.Errorf("there is (-want +got):\n%s", diff)
	}
}

func TestTemplateBuildRefused(t *testing.T) {
	r := serveWith(t, rigOptions{engine: func(c *engine.Config) { c.Templates = &rack{names: map[string]string{}} }})
	id := r.begun(`{"name":"bad"}`)
	for _, body := range []string{
		`{"startCmd":"x"}`, `{"readyCmd":"x"}`, `{"fromTemplate":"other"}`, `{"fromImageRegistry":{"type":"aws"}}`, `{"fromImage":"a\nRUN x"}`, `{`,
		`{"steps":[{"type":"ADD","args":["x"]}]}`, `{"steps":[{"type":"RUN"}]}`, `{"steps":[{"type":"RUN","args":["x","a b"]}]}`,
		`{"steps":[{"type":"ENV","args":["A"]}]}`, `{"steps":[{"type":"ENV","args":["A B","x"]}]}`, `{"steps":[{"type":"ENV","args":["A","x\ny"]}]}`,
		`{"steps":[{"type":"WORKDIR","args":["/a\nRUN x"]}]}`, `{"steps":[{"type":"USER","args":[""]}]}`,
		`{"steps":[{"type":"COPY","args":["a","b"],"filesHash":"../x"}]}`, `{"steps":[{"type":"COPY","args":["a","b","u v"],"filesHash":"0123456789abcdef"}]}`,
		`{"steps":[{"type":"COPY","args":["a","b","","9"],"filesHash":"0123456789abcdef"}]}`,
	} {
		if status, text := r.templateCall("POST", "/v2/templates/bad/builds/"+id, body); status != 400 {
			t.Errorf("%s answered %d %s", body, status, text)
		}
	}
	if status, text := r.templateCall("GET", "/templates/bad/files/xyz", ""); status != 400 {
		t.Errorf("answered %d %s", status, text)
	}
	if status, text := r.templateCall("POST", "/v2/templates/bad/builds/"+id, `{"steps":[{"type":"RUN","args":["x"]}]}`); status != 202 {
		t.Fatalf("answered %d %s", status, text)
	}
	if end := r.ended("bad", id); end.Status != "error" || end.Reason.Message != "it cannot be built" || len(end.Logs) != 3 {
		t.Errorf("it ended as %+v", end)
	}
}

// TestTemplateOfAnotherTenant: a key of another tenant neither sees nor rebuilds nor deletes
// a template, and the sandboxes of those that have it go on.
func TestTemplateOfAnotherTenant(t *testing.T) {
	kept := &rack{names: map[string]string{}}
	r := serveWith(t, rigOptions{
		engine: func(c *engine.Config) { c.Templates = kept },
		fake:   func(c *fake.Config) { c.Templates = []string{"base", "acme/app"} },
	})
	const step = `{"steps":[{"type":"RUN","args":["x"]}]}`
	built := func(key string) {
		t.Helper()
		id := r.begunBy(key, `{"name":"app"}`)
		if status, text := r.callAs(key, "POST", "/v2/templates/app/builds/"+id, step); status != 202 {
			t.Fatalf("answered %d %s", status, text)
		}
		if end := r.endedBy(key, "app", id); end.Status != "ready" {
			t.Fatalf("it ended as %+v", end)
		}
	}
	attack := func() {
		t.Helper()
		for _, c := range [][3]string{
			{"GET", "/templates/app", ""},
			{"GET", "/templates/aliases/app", ""},
			{"DELETE", "/templates/app", ""},
			{"GET", "/templates/app/tags", ""},
			{"POST", "/templates/tags", `{"target":"app","tags":["v1"]}`},
			{"DELETE", "/templates/tags", `{"name":"app","tags":["v1"]}`},
		} {
			if status, text := r.callAs(otherKey, c[0], c[1], c[2]); status != 404 || strings.Contains(text, "acme") {
				t.Errorf("%s %s answered %d %s", c[0], c[1], status, text)
			}
		}
	}
	built(goodKey)
	id := r.create(`{"templateID":"app"}`)
	begun := r.begun(`{"name":"app"}`)
	if status, text := r.callAs(otherKey, "POST", "/v2/templates/app/builds/"+begun, step); status != 404 {
		t.Errorf("a build of another tenant answered %d %s", status, text)
	}
	attack()
	kept.mu.Lock()
	want := maps.Clone(kept.names)
	kept.mu.Unlock()
	built(otherKey)
	if status, text := r.callAs(otherKey, "DELETE", "/templates/app", ""); status != 204 {
		t.Errorf("its own answered %d %s", status, text)
	}
	kept.mu.Lock()
	if diff := cmp.Diff(want, kept.names); diff != "" {
		t.Errorf("the templates (-want +got):\n%s", diff)
	}
	kept.mu.Unlock()
	if s := r.session(id); s.State != cove.Running || s.Spec.Template != "app" {
		t.Errorf("the sandbox is %+v", s)
	}
	if s := r.session(r.create(`{"templateID":"app"}`)); s.Spec.Template != "app" {
		t.Errorf("the next sandbox is %+v", s)
	}
	attack()
}

// TestTemplateScope: a key without the scope is refused before it sends files.
func TestTemplateScope(t *testing.T) {
	r := serveWith(t, rigOptions{engine: func(c *engine.Config) { c.Templates = &rack{names: map[string]string{}} }})
	if status, text := r.callAs(readKey, "POST", "/v3/templates", `{"name":"app"}`); status != 403 || !strings.Contains(text, "the scope templates") {
		t.Errorf("answered %d %s", status, text)
	}
}
