package fake_test

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/fake"
)

// FuzzTar: an archive is unpacked or refused with a reason, and nothing of it
// is outside of the directory that was named.
func FuzzTar(f *testing.F) {
	for _, headers := range [][]tar.Header{
		{{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "d/f", Size: 3}, {Name: "d/l", Typeflag: tar.TypeSymlink, Linkname: "/"}, {Name: "d/l/x", Size: 1}},
		{{Name: "../x", Size: 1}},
		{{Name: "f", Size: 1}, {Name: "h", Typeflag: tar.TypeLink, Linkname: "f"}, {Name: "i", Typeflag: tar.TypeLink, Linkname: "../outside"}},
		{{Name: "f", Size: 1}, {Name: "f/", Typeflag: tar.TypeDir}, {Name: "f/g", Size: 1}},
		{{Name: strings.Repeat("long/", 60) + "f", Size: 1}},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range headers {
			_ = w.WriteHeader(&h)
			_, _ = w.Write(make([]byte, h.Size))
		}
		_ = w.Close()
		f.Add(b.Bytes())
	}
	f.Add([]byte("no tar"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		home := filepath.Join(dir, "home")
		if err := os.Mkdir(home, 0o700); err != nil {
			t.Fatal(err)
		}
		s, err := open(t, fake.Config{Dir: home}).Create(t.Context(), cove.NewID(), cove.Spec{Workspace: cove.Workspace{Size: cove.MiB, Files: 100}})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Files().Unpack(t.Context(), "d", bytes.NewReader(data))
		if code := cove.CodeOf(err); err != nil && code == cove.Internal {
			t.Fatal(err)
		}
		for info, err := range s.Files().List(t.Context(), ".", cove.MaxListDepth) {
			if err == nil && info.Path != "/workspace/d" && !strings.HasPrefix(info.Path, "/workspace/d/") {
				t.Fatalf("%q was written", info.Path)
			}
		}
		if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(names) != 1 {
			t.Fatalf("on the host there are %v, %v", names, err)
		}
	})
}
