package e2bapi_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

const octets = "application/octet-stream"

// upload sends a body to /files.
func (r *rig) upload(id cove.ID, query string, body io.Reader, header ...string) (int, string) {
	r.t.Helper()
	status, answer, _ := r.read(r.inside(r.t.Context(), id, 49983, http.MethodPost, "/files"+query, body, header...))
	return status, answer
}

// content is what is in a file.
func (r *rig) content(id cove.ID, name string) string {
	r.t.Helper()
	f := must(r.platform().Files(id).Read(r.t.Context(), name, 0, 0))(r.t)
	defer f.Close()
	return string(must(io.ReadAll(f))(r.t))
}

// form is a body as browsers write it.
func form(parts ...string) string {
	var b strings.Builder
	for i := 0; i+1 < len(parts); i += 2 {
		b.WriteString("--edge\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + parts[i] + "\"\r\nContent-Type: " + octets + "\r\n\r\n" + parts[i+1] + "\r\n")
	}
	return b.String() + "--edge--\r\n"
}

const formType = "multipart/form-data; boundary=edge"

func TestWriteAndRead(t *testing.T) {
	r := serve(t)
	id := r.open(cove.Spec{})
	for _, tc := range []struct {
		what, query, kind, body, want string
		files                         map[string]string
	}{
		{"a file", "?path=a/b.txt", octets, "one", `[{"name":"b.txt","type":"file","path":"/home/user/a/b.txt"}]`, map[string]string{"a/b.txt": "one"}},
		{"a file again", "?path=~/a/b.txt&username=user", octets, "two", `[{"name":"b.txt","type":"file","path":"/home/user/a/b.txt"}]`, map[string]string{"a/b.txt": "two"}},
		{"nothing", "?path=/tmp/empty", octets, "", `[{"name":"empty","type":"file","path":"/tmp/empty"}]`, map[string]string{"/tmp/empty": ""}},
		{"a form", "?path=c", formType, form("ignored", "three\r\n"), `[{"name":"c","type":"file","path":"/home/user/c"}]`, map[string]string{"c": "three\r\n"}},
		{
			"many", "", formType, form("d/1", "x", "/home/user/d/%22q%22", "y", "ü", ""),
			`[{"name":"1","type":"file","path":"/home/user/d/1"},{"name":"\"q\"","type":"file","path":"/home/user/d/\"q\""},{"name":"ü","type":"file","path":"/home/user/ü"}]`,
			map[string]string{"d/1": "x", `d/"q"`: "y", "ü": ""},
		},
	} {
		status, body := r.upload(id, tc.query, strings.NewReader(tc.body), "Content-Type", tc.kind)
		if status != 200 || body != tc.want {
			t.Errorf("%s: %d\n%s", tc.what, status, cmp.Diff(tc.want, body))
		}
		for name, want := range tc.files {
			if got := r.content(id, name); got != want {
				t.Errorf("%s: %s holds %q", tc.what, name, got)
			}
			status, got, header := r.read(r.inside(t.Context(), id, 49983, http.MethodGet, "/files?path="+url.QueryEscape(name), nil, "Accept-Encoding", "gzip, deflate"))
			if status != 200 || got != want || header.Get("Content-Length") == "" || header.Get("Content-Type") != octets || header.Get("Content-Encoding") != "" {
				t.Errorf("%s: read %s: %d %q %v", tc.what, name, status, got, header)
			}
		}
	}
}

// A file that is written keeps its mode, and a link stays a link.
func TestWriteOver(t *testing.T) {
	r := serve(t)
	id := r.open(cove.Spec{})
	files := r.platform().Files(id)
	if err := files.Write(t.Context(), "run", strings.NewReader("old"), 0o755); err != nil {
		t.Fatal(err)
	}
	must(r.platform().Processes(id).Exec(t.Context(), cove.ExecRequest{Line: "ln -s run link; ln -s loop loop; ln -s new fresh"}))(t)
	for name, lands := range map[string]string{"run": "run", "link": "run", "fresh": "new"} {
		if status, body := r.upload(id, "?path="+name, strings.NewReader("by "+name), "Content-Type", octets); status != 200 || !strings.Contains(body, `"path":"/home/user/`+name+`"`) {
			t.Errorf("%s: %d %s", name, status, body)
		}
		if got := r.content(id, lands); got != "by "+name {
			t.Errorf("%s: %s holds %q", name, lands, got)
		}
	}
	if i := must(files.Stat(t.Context(), "run"))(t); i.Mode != 0o755 {
		t.Errorf("the mode is %s", i.Mode)
	}
	if i := must(files.Stat(t.Context(), "link"))(t); i.Mode.Type() != fs.ModeSymlink {
		t.Errorf("the link is %s", i.Mode)
	}
	status, body, _ := r.read(r.inside(t.Context(), id, 49983, http.MethodGet, "/files?path=link", nil))
	if status != 200 || body != r.content(id, "run") {
		t.Errorf("through the link: %d %q", status, body)
	}
}

func TestMetadata(t *testing.T) {
	r := serve(t)
	id := r.open(cove.Spec{})
	status, body := r.upload(id, "?path=f", strings.NewReader("x"), "Content-Type", octets, "X-Metadata-Author", "Zoe", "X-Metadata-run.ID", "7 8")
	const meta = `"metadata":{"author":"Zoe","run.id":"7 8"}`
	if want := `[{"name":"f","type":"file","path":"/home/user/f",` + meta + `}]`; status != 200 || body != want {
		t.Errorf("%d %s", status, cmp.Diff(want, body))
	}
	if err := r.platform().Files(id).Tag(t.Context(), "f", map[string]string{"other": "not shown"}); err != nil {
		t.Fatal(err)
	}
	for _, got := range []string{r.entries(id, "Stat", `{"path":"f"}`), r.entries(id, "ListDir", `{"path":""}`), r.entries(id, "Move", `{"source":"f","destination":"g"}`)} {
		if !strings.Contains(got, meta) || strings.Contains(got, "not shown") {
			t.Error(got)
		}
	}
	if status, _ := r.upload(id, "?path=g", strings.NewReader("x"), "Content-Type", octets); status != 200 || strings.Contains(r.entries(id, "Stat", `{"path":"g"}`), "metadata") {
		t.Error("a file that was replaced has its old metadata")
	}
	if status, body := r.upload(id, "?path=g", strings.NewReader("y"), "Content-Type", octets, "X-Metadata-k", strings.Repeat("v", 5000)); status != 400 || r.content(id, "g") != "x" {
		t.Errorf("a value that is too long: %d %s", status, body)
	}
	req := r.inside(t.Context(), id, 49983, http.MethodPost, "/files?path=g", strings.NewReader("y"), "Content-Type", octets)
	req.Header["X-Metadata-K"] = []string{"1", "2"}
	if status, body, _ := r.read(req); status != 400 {
		t.Errorf("a key twice: %d %s", status, body)
	}
}

func zipped(text string) *bytes.Buffer {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return &b
}

func TestGzip(t *testing.T) {
	r := serve(t)
	id := r.open(cove.Spec{})
	text := strings.Repeat("all work and no play\n", 1000)
	if status, body := r.upload(id, "?path=f", zipped(text), "Content-Type", octets, "Content-Encoding", "gzip"); status != 200 || r.content(id, "f") != text {
		t.Errorf("%d %s", status, body)
	}
	status, body, header := r.read(r.inside(t.Context(), id, 49983, http.MethodGet, "/files?path=f", nil, "Accept-Encoding", "gzip"))
	if status != 200 || header.Get("Content-Encoding") != "gzip" || len(body) > 1000 {
		t.Fatalf("%d %v", status, header)
	}
	unzip := must(gzip.NewReader(strings.NewReader(body)))(t)
	if got := must(io.ReadAll(unzip))(t); string(got) != text {
		t.Errorf("%d bytes came back", len(got))
	}
	r.putFile(id, "empty", "")
	if status, body, header := r.read(r.inside(t.Context(), id, 49983, http.MethodGet, "/files?path=empty", nil, "Accept-Encoding", "gzip")); status != 200 || body != "" || header.Get("Content-Length") != "0" {
		t.Errorf("nothing: %d %q %v", status, body, header)
	}
	whole := zipped(text).String()
	for what, bad := range map[string]string{"half": whole[:len(whole)/2], "no gzip": text, "nothing": ""} {
		if status, body := r.upload(id, "?path=bad", strings.NewReader(bad), "Content-Type", octets, "Content-Encoding", "gzip"); status != 400 || r.hasFile(id, "bad") {
			t.Errorf("%s: %d %s", what, status, body)
		}
	}
}

func TestWriteErrors(t *testing.T) {
	r := serveWith(t, rigOptions{engine: func(c *engine.Config) { c.MaxFileSize = 1 << 20 }})
	id := r.open(cove.Spec{})
	r.putFile(id, "d/f", "x")
	whole := form("one", "1", "two", "2")
	for what, tc := range map[string]struct {
		query, kind, body, coding string
		status                    int
	}{
		"a directory":          {"?path=d", octets, "x", "", 400},
		"below a file":         {"?path=d/f/g", octets, "x", "", 400},
		"outside":              {"?path=/etc/f", octets, "x", "", 400},
		"a loop":               {"?path=loop", octets, "x", "", 400},
		"a name with a NUL":    {"?path=a%00b", octets, "x", "", 400},
		"no path":              {"", octets, "x", "", 400},
		"another kind":         {"?path=f", "text/plain", "x", "", 400},
		"no kind":              {"?path=f", "", "x", "", 400},
		"another coding":       {"?path=f", octets, "x", "br", 400},
		"root":                 {"?path=f&username=root", octets, "x", "", 400},
		"too large":            {"?path=f", octets, strings.Repeat("x", 1<<20+1), "", 413},
		"a bomb":               {"?path=f", octets, zipped(strings.Repeat("\x00", 64<<20)).String(), "gzip", 413},
		"a form without edges": {"", "multipart/form-data", whole, "", 400},
		"two for one path":     {"?path=pair", formType, whole, "", 400},
		"no name":              {"", formType, form("", "x"), "", 400},
		"no file":              {"", formType, "--edge--\r\n", "", 400},
		"a form that is cut":   {"", formType, strings.TrimSuffix(form("f", "12345"), "\r\n--edge--\r\n"), "", 400},
		"half of a form":       {"", formType, "--edge\r\nContent-Dis", "", 400},
		"files, then no end":   {"", formType, strings.TrimSuffix(form("one", "1"), "--edge--\r\n"), "", 400},
		"no disposition":       {"", formType, "--edge\r\nX: y\r\n\r\nx\r\n--edge--\r\n", "", 400},
		"a large field":        {"", formType, "--edge\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n" + strings.Repeat("x", 1<<17) + "\r\n" + form("f", "1"), "", 400},
		"a field":              {"", formType, "--edge\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\nx\r\n--edge--\r\n", "", 400},
	} {
		t.Run(what, func(t *testing.T) {
			r := *r
			r.t = t
			must(r.platform().Processes(id).Exec(t.Context(), cove.ExecRequest{Line: "ln -sf loop loop"}))(t)
			status, body := r.upload(id, tc.query, strings.NewReader(tc.body), "Content-Type", tc.kind, "Content-Encoding", tc.coding)
			if status != tc.status || !strings.HasPrefix(body, `{"code":`) || r.hasFile(id, "f") {
				t.Errorf("%d %s", status, body)
			}
		})
	}
}

func TestReadErrors(t *testing.T) {
	r := serve(t)
	id := r.open(cove.Spec{})
	r.putFile(id, "d/f", "x")
	for query, want := range map[string]int{"": 400, "?path=none": 404, "?path=d": 400, "?path=d/f/g": 400, "?path=/etc/passwd": 400, "?path=a%00b": 400, "?path=d/f&username=root": 400} {
		status, body, _ := r.read(r.inside(t.Context(), id, 49983, http.MethodGet, "/files"+query, nil))
		if status != want || !strings.HasPrefix(body, `{"code":`) {
			t.Errorf("%q: %d %s", query, status, body)
		}
	}
	for what, token := range map[string]string{"none": "", "wrong": "x", "another's": r.token(r.open(cove.Spec{}))} {
		status, body, _ := r.read(r.inside(t.Context(), id, 49983, http.MethodGet, "/files?path=d/f", nil, "X-Access-Token", token))
		if status != 401 || !strings.HasPrefix(body, `{"code":401`) {
			t.Errorf("token %s: %d %s", what, status, body)
		}
	}
}

func TestWorkspaceFull(t *testing.T) {
	r := serve(t)
	id := r.open(cove.Spec{Workspace: cove.Workspace{Size: cove.MiB}})
	if status, body := r.upload(id, "?path=f", strings.NewReader(strings.Repeat("x", 2<<20)), "Content-Type", octets); status != 507 || !strings.HasPrefix(body, `{"code":507`) {
		t.Errorf("%d %s", status, body)
	}
}

// A client that goes away in the middle leaves the old file.
func TestUploadCutOff(t *testing.T) {
	r := serve(t)
	id := r.open(cove.Spec{})
	r.putFile(id, "f", "old")
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	req := r.inside(ctx, id, 49983, http.MethodPost, "/files?path=f", in, "Content-Type", octets)
	over := make(chan error, 1)
	go func() {
		resp, err := r.server.Client().Do(req)
		if err == nil {
			resp.Body.Close()
		}
		over <- err
	}()
	if _, err := out.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = out.CloseWithError(context.Canceled) // the transport waits for who reads it
	if err := <-over; err == nil {
		t.Error("the call went well")
	}
	if got := r.content(id, "f"); got != "old" {
		t.Errorf("the file holds %q", got)
	}
}
