package registry_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/rootfs"
	"github.com/cove-sandbox/cove/internal/rootfs/image"
	own "github.com/cove-sandbox/cove/internal/rootfs/registry"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pushed is a registry on this machine with one image, and the image's name.
func pushed(t *testing.T, arch string, front func(http.Handler) http.Handler) string {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	must(t, w.WriteHeader(&tar.Header{Name: "greeting", Mode: 0o644, Size: 5}))
	_, err := w.Write([]byte("hello"))
	must(t, errors.Join(err, w.Close()))
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	must(t, err)
	img, err := mutate.AppendLayers(empty.Image, layer)
	must(t, err)
	cfg, err := img.ConfigFile()
	must(t, err)
	cfg.OS, cfg.Architecture, cfg.Config.Env = "linux", arch, []string{"A=b"}
	img, err = mutate.ConfigFile(img, cfg)
	must(t, err)
	idx := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})

	handler := registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)))
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	at := strings.TrimPrefix(server.URL, "http://")
	ref, err := name.ParseReference(at + "/my/app:1")
	must(t, err)
	must(t, remote.WriteIndex(ref, idx))
	if front == nil {
		return ref.String()
	}
	fronted := httptest.NewServer(front(handler))
	t.Cleanup(fronted.Close)
	return strings.TrimPrefix(fronted.URL, "http://") + "/my/app:1"
}

func TestFetch(t *testing.T) {
	ref := pushed(t, runtime.GOARCH, nil)
	dir := filepath.Join(t.TempDir(), "layout")
	must(t, own.Fetch(t.Context(), ref, dir, cove.MiB))
	tree := t.TempDir()
	root, err := os.OpenRoot(tree)
	must(t, err)
	defer func() { _ = root.Close() }()
	info, err := image.Unpack(t.Context(), root, dir, image.Options{Bounds: rootfs.DefaultBounds})
	must(t, err)
	if text, _ := os.ReadFile(filepath.Join(tree, "greeting")); string(text) != "hello" || info.Env["A"] != "b" {
		t.Errorf("got %q and %v", text, info)
	}
}

func TestRefused(t *testing.T) {
	answer := func(status int) func(http.Handler) http.Handler {
		return func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		}
	}
	// Exchanges what is in the layers and says nothing.
	liar := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/blobs/") {
				_, _ = w.Write([]byte("something else"))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	good := pushed(t, runtime.GOARCH, nil)
	for title, c := range map[string]struct {
		ref  string
		most cove.Bytes
		code cove.Code
	}{
		"no name":       {"Not A Name", cove.MiB, cove.Invalid},
		"unknown":       {strings.Replace(good, "my/app", "my/other", 1), cove.MiB, cove.NotFound},
		"too large":     {good, 3, cove.Exhausted},
		"other machine": {pushed(t, "m68k", nil), cove.MiB, cove.Unavailable},
		"not for us":    {pushed(t, runtime.GOARCH, answer(http.StatusForbidden)), cove.MiB, cove.Denied},
		"broken":        {pushed(t, runtime.GOARCH, answer(http.StatusTeapot)), cove.MiB, cove.Unavailable},
		"liar":          {pushed(t, runtime.GOARCH, liar), cove.MiB, cove.Unavailable},
		"nobody":        {"127.0.0.1:1/x:1", cove.MiB, cove.Unavailable},
	} {
		t.Run(title, func(t *testing.T) {
			if err := own.Fetch(t.Context(), c.ref, filepath.Join(t.TempDir(), "layout"), c.most); !errors.Is(err, c.code) {
				t.Errorf("got %v, want %s", err, c.code)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := own.Fetch(ctx, good, t.TempDir(), cove.MiB); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
