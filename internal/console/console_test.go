package console_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/console"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// pack makes an archive as scripts/web.sh does.
func pack(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	archive := tar.NewWriter(&b)
	for name, text := range files {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, err := io.WriteString(z, text)
		if err == nil {
			err = z.Close()
		}
		if err == nil {
			err = archive.WriteHeader(&tar.Header{Name: "./" + name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(packed.Len())})
		}
		if err == nil {
			_, err = archive.Write(packed.Bytes())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A test is a plain build.
func TestPlainBuildHasNone(t *testing.T) {
	if p, err := console.Embedded(); p != nil || err != nil {
		t.Fatalf("%v, %v", p, err)
	}
}

func TestServe(t *testing.T) {
	t.Cleanup(console.Put(pack(t, map[string]string{"index.html.gz": "<p>page", "main-1.js.gz": "run()", "icon.svg.gz": "<svg/>"})))
	pages, err := console.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, accepts, body, kind, kept string }{
		{"", "br, gzip", "<p>page", "text/html; charset=utf-8", "no-cache"},
		{"", "", "<p>page", "text/html; charset=utf-8", "no-cache"},
		{"main-1.js", "gzip;q=0", "run()", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"},
		{"main-1.js", "gzip;q=0.5", "run()", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"},
		{"icon.svg", "gzip", "<svg/>", "image/svg+xml", "public, max-age=31536000, immutable"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", c.accepts)
		w := httptest.NewRecorder()
		if !pages.Serve(w, r, c.name) {
			t.Errorf("there is no %q", c.name)
			continue
		}
		h, body := w.Header(), w.Body.Bytes()
		if packed := h.Get("Content-Encoding") == "gzip"; packed != (c.accepts != "" && !strings.HasSuffix(c.accepts, "q=0")) {
			t.Errorf("%q for %q: packed is %v", c.name, c.accepts, packed)
		} else if packed {
			z, err := gzip.NewReader(w.Body)
			if err == nil {
				body, err = io.ReadAll(z)
			}
			if err != nil {
				t.Error(err)
			}
		}
		if string(body) != c.body || h.Get("Content-Type") != c.kind || h.Get("Cache-Control") != c.kept {
			t.Errorf("%q: %q %v", c.name, body, h)
		}
		r.Header.Set("If-None-Match", h.Get("Etag"))
		w = httptest.NewRecorder()
		if pages.Serve(w, r, c.name); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
			t.Errorf("%q again: %d %q", c.name, w.Code, w.Body)
		}
	}
	for _, name := range []string{"index.html", "none.js", "../main-1.js", "main-1.js.gz"} {
		if pages.Serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), name) {
			t.Errorf("there is a %q", name)
		}
	}
}

// TestPolicy: the page runs no script but its own, and talks to nobody else.
func TestPolicy(t *testing.T) {
	t.Cleanup(console.Put(pack(t, map[string]string{"index.html.gz": ""})))
	pages, err := console.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	pages.Serve(w, httptest.NewRequest(http.MethodGet, "/", nil), "")
	policy := w.Header().Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self';", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy lacks %s: %s", part, policy)
		}
	}
	if w.Header().Get("X-Dns-Prefetch-Control") != "off" {
		t.Error("a browser looks names up that a sandbox wrote")
	}
	if strings.Contains(policy, "unsafe-eval") || strings.Contains(policy, "*") {
		t.Errorf("the policy is loose: %s", policy)
	}
}

func TestBadArchives(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"no archive": []byte("nothing of the kind"), "empty": nil, "no page": pack(t, map[string]string{"main.js.gz": ""}),
		"not packed": pack(t, map[string]string{"index.html": ""}), "another file": pack(t, map[string]string{"index.html.gz": "", "run.exe.gz": ""}),
	} {
		at := filepath.Join(dir, name)
		if err := os.WriteFile(at, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := console.Open(at); err == nil {
			t.Errorf("%s: %v", name, p)
		}
	}
	if _, err := console.Open(filepath.Join(dir, "none")); err == nil {
		t.Error("a file that is not there")
	}
}

// TestSize: all of the console is fetched in a moment, also over a slow line.
func TestSize(t *testing.T) {
	const most = 400_000
	pages, err := console.Open(filepath.Join(providertest.Needs(t, "console", "COVE_TEST_CONSOLE"), "console.tar"))
	if err != nil {
		t.Fatal(err)
	}
	if n := pages.Size(); n > most {
		t.Errorf("the console has %d bytes, compressed; the most is %d", n, most)
	} else {
		t.Logf("%d bytes, compressed", n)
	}
}
