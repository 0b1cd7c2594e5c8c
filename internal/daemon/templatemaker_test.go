//go:build !lean

package daemon_test

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// contextTar is a tar with one file.
func contextTar(t *testing.T, name, text string) *bytes.Reader {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	done(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}))
	_, err := w.Write([]byte(text))
	done(t, err)
	done(t, w.Close())
	return bytes.NewReader(out.Bytes())
}

// TestTemplatesAreKept: what a server's clients do to templates is done to those of
// its home.
func TestTemplatesAreKept(t *testing.T) {
	cfg := settings(t)
	r, _ := serve(t, cfg, daemon.Options{})
	key, err := os.ReadFile(r.KeyFile)
	done(t, err)
	p := dial(t, r.URL, strings.TrimSpace(string(key))).Templates()
	_, err = daemon.BuildTemplate(t.Context(), cfg, daemon.TemplateBuild{Name: "mine", Dir: shellTree(t)})
	done(t, err)
	made, err := p.Tag(t.Context(), "mine", "mine.v1", true)
	if err != nil || made.Name != "mine.v1" || len(made.Digest) != 64 {
		t.Fatalf("tagged %+v, %v", made, err)
	}
	found := map[string]string{}
	for one, err := range p.List(t.Context()) {
		done(t, err)
		found[one.Name] = one.Digest
	}
	if found["mine"] != made.Digest || found["mine.v1"] != made.Digest {
		t.Errorf("there are %v", found)
	}
	done(t, p.Delete(t.Context(), "mine.v1", true))
	if err := p.Delete(t.Context(), "mine.v1", true); cove.CodeOf(err) != cove.NotFound {
		t.Errorf("a second time it gave %v", err)
	}

	t.Setenv("PATH", t.TempDir()) // no Docker
	for name, c := range map[string]struct {
		files *bytes.Reader
		want  cove.Code
	}{
		"no Docker":     {contextTar(t, "Dockerfile", "FROM scratch\n"), cove.Unsupported},
		"no Dockerfile": {contextTar(t, "other", ""), cove.Invalid},
		"no tar":        {bytes.NewReader([]byte("text")), cove.Invalid},
	} {
		if _, err := p.Build(t.Context(), cove.TemplateRequest{Name: "x", Files: c.files}); cove.CodeOf(err) != c.want {
			t.Errorf("%s gave %v, want %s", name, err, c.want)
		}
	}
	if left, err := os.ReadDir(filepath.Join(cfg.Home, "builds")); err != nil || len(left) != 0 {
		t.Errorf("builds left %v, %v", left, err)
	}
}
