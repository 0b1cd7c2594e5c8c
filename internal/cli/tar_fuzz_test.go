package cli_test

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/cove-sandbox/cove/internal/cli"
)

// FuzzTar: whatever a sandbox sends as an archive, cp writes nothing outside of
// its target, and no link in it leads out.
func FuzzTar(f *testing.F) {
	for _, headers := range [][]tar.Header{
		{{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "d/f", Size: 3, Mode: 0o4777}},
		{{Name: "../x", Size: 1}, {Name: "/y", Size: 1}},
		{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "l/x", Size: 1}},
		{{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "b"}, {Name: "b", Typeflag: tar.TypeSymlink, Linkname: "../.."}, {Name: "a/x", Size: 1}},
		{{Name: "h", Typeflag: tar.TypeLink, Linkname: "../outside"}, {Name: "dev", Typeflag: tar.TypeBlock}},
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
		target, outside := filepath.Join(dir, "target"), filepath.Join(dir, "outside")
		if err := os.Mkdir(target, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(outside, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = cli.Unpack(target, bytes.NewReader(data), io.Discard) // it may refuse
		if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(names) != 2 {
			t.Fatalf("there are %v, %v", names, err)
		}
		if text, err := os.ReadFile(outside); err != nil || string(text) != "mine" {
			t.Fatalf("the file outside holds %q, %v", text, err)
		}
	})
}
