package daemon_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// wired is a server with a session in it, and a way to talk to it without the
// client.
type wired struct {
	t    *testing.T
	url  string
	key  string
	id   cove.ID
	http *http.Client
}

func plug(t *testing.T, pairs ...string) *wired {
	t.Helper()
	r, _ := serve(t, settings(t, pairs...), daemon.Options{})
	key, err := os.ReadFile(r.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	w := &wired{t: t, url: r.URL, key: strings.TrimSpace(string(key)), http: &http.Client{Transport: transport}}
	s, err := dial(t, r.URL, w.key).Sessions().Open(t.Context(), cove.OpenRequest{
		Spec: cove.Spec{Workspace: cove.Workspace{Kind: cove.WorkspaceMemory, Size: 3 * cove.MiB, Files: 20}},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.id = s.ID
	return w
}

// send makes a request about the session.
func (w *wired) send(method, path string, body io.Reader, header ...string) (status int, text string) {
	w.t.Helper()
	return w.ask(method, "/api/sandboxes/"+string(w.id)+path, body, header...)
}

// ask makes a request.
func (w *wired) ask(method, path string, body io.Reader, header ...string) (status int, text string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.key)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := w.http.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// names lists the workspace.
func (w *wired) names() string {
	w.t.Helper()
	c := dial(w.t, w.url, w.key)
	var names []string
	for f, err := range c.Files(w.id).List(w.t.Context(), ".", 5) {
		if err != nil {
			w.t.Fatal(err)
		}
		names = append(names, fmt.Sprintf("%s %d", strings.TrimPrefix(f.Path, "/workspace/"), f.Size))
	}
	return strings.Join(names, ", ")
}

func (w *wired) put(name string, size int) (int, string) {
	w.t.Helper()
	return w.send("PUT", "/files?path="+name, io.LimitReader(zeros{}, int64(size)))
}

func (w *wired) form(files map[string]int, order ...string) (int, string) {
	w.t.Helper()
	var b bytes.Buffer
	f := multipart.NewWriter(&b)
	for _, name := range order {
		to, err := f.CreateFormFile("file", name)
		if err != nil {
			w.t.Fatal(err)
		}
		_, _ = io.CopyN(to, zeros{}, int64(files[name]))
	}
	_ = f.Close()
	return w.send("POST", "/upload", &b, "Content-Type", f.FormDataContentType())
}

func (w *wired) tar(files map[string]int, order ...string) (int, string) {
	w.t.Helper()
	return w.send("PUT", "/archive", bytes.NewReader(tarOf(w.t, files, order...)))
}

func tarOf(t *testing.T, files map[string]int, order ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	f := tar.NewWriter(&b)
	for _, name := range order {
		if err := f.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(files[name])}); err != nil {
			t.Fatal(err)
		}
		_, _ = io.CopyN(f, zeros{}, int64(files[name]))
	}
	_ = f.Close()
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

const mib = 1 << 20

// TestFileLimit: by each way in, a file of the limit is taken, and one of a byte
// more is refused with 413 and leaves nothing.
func TestFileLimit(t *testing.T) {
	w := plug(t, "MAX_FILE_SIZE_MB", "1")
	for _, way := range []struct {
		name string
		send func(size int) (int, string)
		good int
	}{
		{"put", func(size int) (int, string) { return w.put("f", size) }, 204},
		{"form", func(size int) (int, string) { return w.form(map[string]int{"f": size}, "f") }, 201},
		{"tar", func(size int) (int, string) { return w.tar(map[string]int{"f": size}, "f") }, 204},
	} {
		t.Run(way.name, func(t *testing.T) {
			if status, text := way.send(mib); status != way.good {
				t.Errorf("at the limit: %d %s", status, text)
			}
			if got := w.names(); got != fmt.Sprintf("f %d", mib) {
				t.Errorf("there is %s", got)
			}
			if status, text := w.send("DELETE", "/files?path=f", nil); status != 204 {
				t.Errorf("%d %s", status, text)
			}
			status, text := way.send(mib + 1)
			if status != 413 || !strings.Contains(text, `larger than 1m, the most that may be written`) || !strings.Contains(text, `"reason":"file_too_large"`) {
				t.Errorf("over the limit: %d %s", status, text)
			}
			if got := w.names(); got != "" {
				t.Errorf("there is %s", got)
			}
		})
	}
}

// TestWorkspaceLimit: by each way in, the workspace takes what it has room for
// to the byte, and one more is refused with 507. So is one file too many.
func TestWorkspaceLimit(t *testing.T) {
	for name, send := range map[string]func(w *wired, name string, size int) (int, string){
		"put":  func(w *wired, name string, size int) (int, string) { return w.put(name, size) },
		"form": func(w *wired, name string, size int) (int, string) { return w.form(map[string]int{name: size}, name) },
		"tar":  func(w *wired, name string, size int) (int, string) { return w.tar(map[string]int{name: size}, name) },
	} {
		t.Run(name, func(t *testing.T) {
			w := plug(t, "MAX_FILE_SIZE_MB", "8")
			if status, text := send(w, "all", 3*mib); status >= 300 {
				t.Errorf("all of it: %d %s", status, text)
			}
			if status, text := send(w, "more", 1); status != 507 || !strings.Contains(text, `"reason":"workspace_full"`) {
				t.Errorf("one more byte: %d %s", status, text)
			}
			if status, text := w.send("DELETE", "/files?path=all", nil); status != 204 {
				t.Fatalf("%d %s", status, text)
			}
			if status, text := send(w, "over", 3*mib+1); status != 507 || !strings.Contains(text, `"reason":"workspace_full"`) {
				t.Errorf("a byte over all of it: %d %s", status, text)
			}
			for i := range 20 {
				if status, text := send(w, fmt.Sprint(i), 1); status >= 300 {
					t.Errorf("file %d: %d %s", i, status, text)
				}
			}
			if status, text := send(w, "20", 0); status != 507 || !strings.Contains(text, `"reason":"workspace_full"`) {
				t.Errorf("a file too many: %d %s", status, text)
			}
		})
	}
}

// TestFormIsRefusedInTheMiddle: what came before the file that is too large
// stays, and the answer says so.
func TestFormIsRefusedInTheMiddle(t *testing.T) {
	w := plug(t, "MAX_FILE_SIZE_MB", "1")
	sizes := map[string]int{"a": 10, "b": mib + 1, "c": 10}
	status, text := w.form(sizes, "a", "b", "c")
	if status != 413 || !strings.Contains(text, `"written":[{"path":"/workspace/a","size":10}]`) {
		t.Errorf("form: %d %s", status, text)
	}
	if status, text := w.tar(sizes, "a", "b", "c"); status != 413 {
		t.Errorf("tar: %d %s", status, text)
	}
	if got := w.names(); got != "a 10" {
		t.Errorf("there is %s", got)
	}
}

// TestClientVanishes: who goes away in the middle of a file leaves nothing of it,
// by each way in; whole files before it in the same request stay.
func TestClientVanishes(t *testing.T) {
	w := plug(t)
	archive := tarOf(t, map[string]int{"whole": 10, "half": mib}, "whole", "half")
	for name, c := range map[string]struct{ head, body, left string }{
		"put":         {"PUT /api/sandboxes/%s/files?path=half HTTP/1.1\r\nContent-Length: 1000000\r\n", strings.Repeat("x", 200_000), ""},
		"put chunked": {"PUT /api/sandboxes/%s/files?path=half HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", "30d40\r\n" + strings.Repeat("x", 200_000) + "\r\n", ""},
		"form": {
			"POST /api/sandboxes/%s/upload HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000000\r\n",
			"--b\r\nContent-Disposition: form-data; name=f; filename=whole\r\n\r\n0123456789\r\n--b\r\nContent-Disposition: form-data; name=f; filename=half\r\n\r\n" + strings.Repeat("x", 200_000),
			"whole 10",
		},
		"tar": {"PUT /api/sandboxes/%s/archive HTTP/1.1\r\nContent-Length: 2000000\r\n", string(archive[:300_000]), "whole 10"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(w.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Fprintf(conn, c.head+"Host: x\r\nAuthorization: Bearer %s\r\n\r\n%s", w.id, w.key, c.body); err != nil {
				t.Fatal(err)
			}
			if c.left != "" {
				w.until(func() bool { return w.names() == c.left })
			} else {
				w.until(w.busy)
			}
			_ = conn.Close()
			w.until(func() bool { return !w.busy() })
			if got := w.names(); got != c.left {
				t.Errorf("there is %q, want %q", got, c.left)
			}
			_, _ = w.send("DELETE", "/files?path=whole", nil)
		})
	}
}

func (w *wired) busy() bool {
	w.t.Helper()
	_, text := w.send("GET", "", nil)
	return strings.Contains(text, `"busy":true`)
}

// until asks again and again, as long as the test may take.
func (w *wired) until(holds func() bool) {
	w.t.Helper()
	for !holds() {
		if w.t.Context().Err() != nil {
			w.t.Fatal("it never came")
		}
	}
}

// TestTwoPuts: of two that write one file at once, one wins whole, whichever is
// asked when.
func TestTwoPuts(t *testing.T) {
	w := plug(t)
	const size = 300_000
	whole := map[string]bool{}
	for _, letter := range []string{"a", "b"} {
		whole[strings.Repeat(letter, size)] = true
	}
	for range 5 {
		var both sync.WaitGroup
		for content := range whole {
			both.Go(func() {
				if status, text := w.send("PUT", "/files?path=f", strings.NewReader(content)); status != 204 {
					t.Errorf("%d %s", status, text)
				}
			})
		}
		ctx, stop := context.WithCancel(t.Context())
		var looking sync.WaitGroup
		looking.Go(func() {
			for ctx.Err() == nil {
				if status, text := w.send("GET", "/files?path=f", nil); status != 404 && !whole[text] {
					t.Errorf("%d: %d bytes that are neither", status, len(text))
					return
				}
			}
		})
		both.Wait()
		stop()
		looking.Wait()
		if status, text := w.send("GET", "/files?path=f", nil); status != 200 || !whole[text] {
			t.Errorf("%d: %d bytes that are neither", status, len(text))
		}
	}
	if got := w.names(); got != fmt.Sprintf("f %d", size) {
		t.Errorf("there is %s", got)
	}
}

// TestPathsThatLeave: names that lead out of the workspace are refused by each
// way in and out, with a sentence that says where a path may be.
func TestPathsThatLeave(t *testing.T) {
	w := plug(t)
	for _, path := range []string{"/proc/self/root/etc/passwd", "/proc/self/root", "../../etc/passwd", "/etc/passwd", "/workspace/../etc/passwd"} {
		for _, c := range []struct{ method, route string }{
			{"GET", "/files?path="},
			{"PUT", "/files?path="},
			{"DELETE", "/files?path="},
			{"GET", "/files/stat?path="},
			{"GET", "/files/list?path="},
			{"GET", "/archive?path="},
			{"PUT", "/archive?path="},
		} {
			if status, text := w.send(c.method, c.route+path, nil); status != 400 || !strings.Contains(text, "leaves the workspace; use a path below /workspace, /tmp or /home") {
				t.Errorf("%s %s%s: %d %s", c.method, c.route, path, status, text)
			}
		}
		body := "--b\r\nContent-Disposition: form-data; name=f; filename=x\r\n\r\nx\r\n--b--\r\n"
		if status, text := w.send("POST", "/upload?path="+path, strings.NewReader(body), "Content-Type", "multipart/form-data; boundary=b"); status != 400 || !strings.Contains(text, "leaves the workspace") {
			t.Errorf("form %s: %d %s", path, status, text)
		}
	}
	for _, c := range []struct{ method, route string }{{"GET", "/files?path=a%00b"}, {"PUT", "/files?path=a%00b"}, {"GET", "/archive?path=a%00b"}} {
		if status, text := w.send(c.method, c.route, nil); status != 400 || !strings.Contains(text, "path: holds a NUL byte") {
			t.Errorf("%s %s: %d %s", c.method, c.route, status, text)
		}
	}
	if status, text := w.send("POST", "/files/mkdir", strings.NewReader(`{"path":"a\u0000b"}`)); status != 400 || !strings.Contains(text, "path: holds a NUL byte") {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := w.send("GET", "", nil); status != 200 {
		t.Errorf("the server does not go on: %d", status)
	}
	if got := w.names(); got != "" {
		t.Errorf("there is %s", got)
	}
}
