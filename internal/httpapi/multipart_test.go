package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/httpapi"
)

// shelf is a fake that keeps the files that are written whole.
type shelf struct {
	*fake

	mu    sync.Mutex
	files map[string]string // guarded by mu; name to mode and content
	most  int               // bytes of a file; 0: any
}

func (s *shelf) Files(id cove.ID) cove.Files { return shelfFiles{fakeFiles{s.fake, id}, s} }

type shelfFiles struct {
	fakeFiles

	s *shelf
}

func (f shelfFiles) Write(_ context.Context, name string, r io.Reader, mode fs.FileMode) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if f.s.most > 0 && len(data) > f.s.most {
		return cove.Errorf(cove.Invalid, "the file is too large").Reason(cove.ReasonFileTooLarge)
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.s.files[name] = fmt.Sprintf("%04o %s", mode.Perm(), data)
	return nil
}

// serveShelf starts a server in front of a shelf.
func serveShelf(t *testing.T) (*rig, *shelf) {
	t.Helper()
	s := &shelf{fake: &fake{}, files: map[string]string{}}
	return serve(t, func(c *httpapi.Config) { c.Platform = func(cove.Principal) cove.Platform { return s } }), s
}

// part is one part of a form: a header and what follows it.
type part struct{ disposition, content string }

func formOf(t testing.TB, parts ...part) (body, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, p := range parts {
		to, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {p.disposition}})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(to, p.content)
	}
	_ = w.Close()
	return b.String(), w.FormDataContentType()
}

const uploadPath = "/api/sandboxes/x/upload"

func TestForm(t *testing.T) {
	r, s := serveShelf(t)
	large := strings.Repeat("0123456789abcdef\r\n--", 10_000)
	body, media := formOf(
		t,
		part{`form-data; name="file"; filename="a.txt"`, "one"},
		part{`form-data; name="other"; filename="sub/dir/b"`, large},
		part{`form-data; name="path"`, "renamed/c"}, part{`form-data; name="mode"`, "0755"},
		part{`form-data; name="file"; filename="ignored"`, ""},
		part{`form-data; name="file"; filename="after"`, "\x00\xff"},
		part{`form-data; name="file"; filename*=utf-8''gr%C3%BC%C3%9Fe`, "x"},
	)
	a := r.send("POST", uploadPath+"?path=up", body, "Content-Type", media, "X-File-Mode", "600")
	if a.status != 201 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	want := map[string]string{
		"/workspace/up/a.txt": "0600 one", "/workspace/up/sub/dir/b": "0600 " + large, "/workspace/up/renamed/c": "0755 ",
		"/workspace/up/after": "0600 \x00\xff", "/workspace/up/grüße": "0600 x",
	}
	if diff := cmp.Diff(want, s.files); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !strings.HasPrefix(a.body, `{"files":[{"path":"/workspace/up/a.txt","size":3},{"path":"/workspace/up/sub/dir/b","size":200000},{"path":"/workspace/up/renamed/c","size":0},`) {
		t.Errorf("%s", a.body)
	}
	body, media = formOf(t, part{`form-data; name="f"; filename="x"`, "y"})
	for query, name := range map[string]string{"": "/workspace/x", "?path=/tmp/d": "/tmp/d/x", "?path=.": "/workspace/x"} {
		if a := r.send("POST", uploadPath+query, body, "Content-Type", media); a.status != 201 || !strings.Contains(a.body, `"`+name+`"`) {
			t.Errorf("%q: %d %s", query, a.status, a.body)
		}
	}
}

// TestFormsThatDoNotFit: each has a status and a message of its own, what came
// before stays and is told, and the connection's next request is not harmed.
func TestFormsThatDoNotFit(t *testing.T) {
	r, s := serveShelf(t)
	s.most = 1000
	file := func(name string) part { return part{`form-data; name="f"; filename="` + name + `"`, "content"} }
	for name, c := range map[string]struct {
		parts  []part
		cut    int // bytes at the end that do not come
		status int
		want   string
	}{
		"nothing":              {nil, 0, 400, "the form holds no file"},
		"only fields":          {[]part{{`form-data; name="path"`, "x"}}, 0, 400, "the form holds no file"},
		"unknown field":        {[]part{{`form-data; name="color"`, "x"}}, 0, 400, "color: is not a field of this form"},
		"no disposition":       {[]part{{"", "x"}}, 0, 400, "Content-Disposition"},
		"attachment":           {[]part{{`attachment; filename="x"`, "x"}}, 0, 400, "Content-Disposition"},
		"bad mode":             {[]part{{`form-data; name="mode"`, "rwx"}, file("x")}, 0, 400, "not a file mode"},
		"a long field":         {[]part{{`form-data; name="path"`, strings.Repeat("x", 9000)}, file("x")}, 0, 413, "path: is longer than 8192 bytes"},
		"a long header":        {[]part{file("x"), {`form-data; name="f"; filename="y"; x="` + strings.Repeat("y", 40<<10) + `"`, "x"}}, 0, 413, "longer than 32768 bytes"},
		"parent":               {[]part{file("../x")}, 0, 400, "cannot be the name of a file below"},
		"parent in the middle": {[]part{file("a/../x")}, 0, 400, "cannot be the name of a file below"},
		"absolute":             {[]part{file("/etc/passwd")}, 0, 400, "cannot be the name of a file below"},
		"nul":                  {[]part{{`form-data; name="f"; filename*=utf-8''a%00b`, "x"}}, 0, 400, `a\x00b`},
		"nul in path":          {[]part{{`form-data; name="path"`, "a\x00b"}, file("x")}, 0, 400, `a\x00b`},
		"the directory itself": {[]part{file("./.")}, 0, 400, "cannot be the name of a file below"},
		"no last boundary":     {[]part{file("x")}, 4, 400, "ends before its last boundary"},
		"cut in a file":        {[]part{file("before"), file("x")}, 70, 400, "ends before its last boundary"},
		"cut in a header":      {[]part{file("before"), file("x")}, 100, 400, "ends before its last boundary"},
		"too large":            {[]part{file("before"), {`form-data; name="f"; filename="x"`, strings.Repeat("x", 1001)}, file("after")}, 0, 413, "the file is too large"},
	} {
		t.Run(name, func(t *testing.T) {
			clear(s.files)
			body, media := formOf(t, c.parts...)
			a := r.send("POST", uploadPath, body[:len(body)-c.cut], "Content-Type", media)
			if p := a.problem(t); a.status != c.status || p.Code != cove.Invalid || !strings.Contains(p.Error, c.want) {
				t.Errorf("%d %s", a.status, a.body)
			}
			if _, there := s.files["/workspace/x"]; there && c.cut != 4 && name != "a long header" {
				t.Errorf("a file was written: %q", s.files)
			}
			if _, there := s.files["/workspace/before"]; there != strings.Contains(a.body, `"written":[{"path":"/workspace/before","size":7}]`) {
				t.Errorf("before: %v, and the answer says %s", there, a.body)
			}
		})
	}
	if a := r.send("POST", uploadPath, "", "Content-Type", "text/plain"); a.status != 400 || !strings.Contains(a.body, "is not multipart/form-data") {
		t.Errorf("no form: %d %s", a.status, a.body)
	}
	body, media := formOf(t, file("x"))
	if a := r.send("POST", uploadPath, body, "Content-Type", media, "X-File-Mode", "9"); a.status != 400 {
		t.Errorf("a bad mode: %d %s", a.status, a.body)
	}
	if a := r.send("POST", uploadPath, body, "Content-Type", media); a.status != 201 {
		t.Errorf("the next form: %d %s", a.status, a.body)
	}
}

func TestFormOfManyFiles(t *testing.T) {
	r, s := serveShelf(t)
	var parts []part
	for i := range 1001 {
		parts = append(parts, part{fmt.Sprintf(`form-data; name="f"; filename="%d"`, i), "x"})
	}
	body, media := formOf(t, parts[:1000]...)
	if a := r.send("POST", uploadPath, body, "Content-Type", media); a.status != 201 || len(s.files) != 1000 {
		t.Errorf("1000 files: %d, %d written", a.status, len(s.files))
	}
	clear(s.files)
	body, media = formOf(t, parts...)
	if a := r.send("POST", uploadPath, body, "Content-Type", media); a.status != 400 || !strings.Contains(a.body, "more than 1000 files") || len(s.files) != 1000 {
		t.Errorf("1001 files: %d %.200s, %d written", a.status, a.body, len(s.files))
	}
}

// TestFormBreaksOff: a client that goes away in the middle of a file leaves
// those before it and nothing of it.
func TestFormBreaksOff(t *testing.T) {
	r := serve(t)
	done := make(chan error, 2)
	r.fake.write = func(_ context.Context, src io.Reader) error {
		_, err := io.Copy(io.Discard, src)
		done <- err
		return err
	}
	conn := r.raw("POST " + uploadPath + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + secret +
		"\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000\r\n\r\n" +
		"--b\r\nContent-Disposition: form-data; name=f; filename=one\r\n\r\nwhole\r\n" +
		"--b\r\nContent-Disposition: form-data; name=f; filename=two\r\n\r\nhalf")
	if err := <-done; err != nil {
		t.Errorf("the first file: %v", err)
	}
	_ = conn.Close()
	if err := <-done; !errors.Is(err, cove.Canceled) {
		t.Errorf("the platform saw %v for the half", err)
	}
}

func TestFormStalls(t *testing.T) {
	r := serve(t, quick)
	r.fake.write = func(_ context.Context, src io.Reader) error {
		_, err := io.Copy(io.Discard, src)
		return err
	}
	conn := r.raw("POST " + uploadPath + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + secret +
		"\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000\r\n\r\n--b\r\nContent-Disposition: form-data; name=f; filename=one\r\n\r\nha")
	defer conn.Close()
	if got := statusLine(t, conn); got != http.StatusGatewayTimeout {
		t.Errorf("%d", got)
	}
}

// FuzzMultipart: whatever a form holds, the answer is one of a few, no file is
// written outside of the directory, and what was written is what the answer says.
func FuzzMultipart(f *testing.F) {
	for _, parts := range [][]part{
		{{`form-data; name="f"; filename="a"`, "x"}},
		{{`form-data; name="path"`, "../../x"}, {`form-data; name="f"; filename="a"`, "x"}},
		{{`form-data; name="mode"`, "0755"}, {`form-data; name="f"; filename*=utf-8''%2e%2e%2fa%00`, "x"}},
	} {
		body, media := formOf(f, parts...)
		_, boundary, _ := strings.Cut(media, "boundary=")
		f.Add([]byte(strings.ReplaceAll(body, boundary, "b")))
	}
	f.Add([]byte("--b--"))
	f.Add([]byte("preamble\r\n--b\r\n\r\n--b\r\nContent-Disposition: form-data\r\n\r\n--b--\r\nepilogue"))
	f.Fuzz(func(t *testing.T, body []byte) {
		s := &shelf{fake: &fake{}, files: map[string]string{}}
		a := ask(s, "POST", uploadPath+"?path=up", bytes.NewReader(body), "Content-Type", "multipart/form-data; boundary=b")
		if a.status != 201 && a.status != 400 && a.status != 413 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		for name := range s.files {
			if !strings.HasPrefix(name, "/workspace/up/") || strings.Contains(name+"/", "/../") || strings.ContainsRune(name, 0) {
				t.Fatalf("written to %q", name)
			}
		}
		if got := len(s.files); (got > 0) != strings.Contains(a.body, `"size":`) {
			t.Fatalf("%d files were written, and the answer says %s", got, a.body)
		}
	})
}
