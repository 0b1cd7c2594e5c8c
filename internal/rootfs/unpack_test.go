package rootfs_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/rootfs"
)

// entry is one entry of a tar; the first letter of kind says what it is.
type entry struct {
	kind rune // f file, d directory, l link, h second name, c device, p pipe
	name string
	text string // content, or where it leads
	mode int64
}

func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, ModTime: time.Unix(1_000_000_000, 0), Format: tar.FormatPAX}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		switch e.kind {
		case 'd':
			h.Typeflag = tar.TypeDir
		case 'l':
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.text
		case 'h':
			h.Typeflag, h.Linkname = tar.TypeLink, e.text
		case 'c':
			h.Typeflag, h.Devmajor, h.Devminor = tar.TypeChar, 1, 3
		case 'p':
			h.Typeflag = tar.TypeFifo
		default:
			h.Typeflag, h.Size = tar.TypeReg, int64(len(e.text))
		}
		must(t, w.WriteHeader(h))
		if e.kind == 'f' {
			_, err := w.Write([]byte(e.text))
			must(t, err)
		}
	}
	must(t, w.Close())
	return b.Bytes()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openRoot(t testing.TB, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// shape lists a tree: one line for each entry.
func shape(t testing.TB, dir string) (lines []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		line := info.Mode().String() + " " + name
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			line = "L " + name + " -> " + to
		case info.Mode().IsRegular():
			text, _ := os.ReadFile(path)
			line += " " + string(text)
		}
		lines = append(lines, line)
		return nil
	}))
	return lines
}

func TestUnpack(t *testing.T) {
	for name, c := range map[string]struct {
		layers [][]entry
		want   []string
		code   cove.Code
	}{
		"plain": {
			layers: [][]entry{{{'d', "a", "", 0o700}, {'f', "a/b", "x", 0o600}, {'f', "./c", "y", 0o755}}},
			want:   []string{"drwxr-xr-x a", "-rw-r--r-- a/b x", "-rwxr-xr-x c y"},
		},
		"absolute names are inside": {
			layers: [][]entry{{{'f', "/etc/x", "x", 0}}},
			want:   []string{"drwxr-xr-x etc", "-rw-r--r-- etc/x x"},
		},
		"setuid and write bits go": {
			layers: [][]entry{{{'f', "su", "x", 0o6777}, {'d', "tmp", "", 0o1777}}},
			want:   []string{"-rwxr-xr-x su x", "drwxr-xr-x tmp"},
		},
		"devices and pipes are left out": {
			layers: [][]entry{{{'c', "dev/null", "", 0}, {'p', "run/pipe", "", 0}, {'f', "x", "", 0}}},
			want:   []string{"-rw-r--r-- x "},
		},
		"a link out is followed inside": {
			layers: [][]entry{{{'l', "out", "/outside", 0}, {'f', "out/x", "x", 0}, {'l', "up", "../../../up2", 0}, {'f', "up/y", "y", 0}}},
			want: []string{
				"L out -> /outside", "drwxr-xr-x outside", "-rw-r--r-- outside/x x", "L up -> ../../../up2", "drwxr-xr-x up2", "-rw-r--r-- up2/y y",
			},
		},
		"a file replaces a link and does not follow it": {
			layers: [][]entry{{{'l', "x", "/etc/passwd", 0}}, {{'f', "x", "new", 0}}},
			want:   []string{"-rw-r--r-- x new"},
		},
		"a link replaces a directory": {
			layers: [][]entry{{{'f', "lib/a", "a", 0}}, {{'l', "lib", "usr/lib", 0}, {'f', "lib/b", "b", 0}}},
			want:   []string{"L lib -> usr/lib", "drwxr-xr-x usr", "drwxr-xr-x usr/lib", "-rw-r--r-- usr/lib/b b"},
		},
		"the last of one name counts": {
			layers: [][]entry{{{'f', "x", "1", 0}, {'f', "x", "2", 0}, {'d', "y", "", 0}, {'f', "y", "file", 0}}},
			want:   []string{"-rw-r--r-- x 2", "-rw-r--r-- y file"},
		},
		"second names": {
			layers: [][]entry{{{'f', "a/x", "1", 0}, {'h', "y", "a/x", 0}, {'l', "s", "a/x", 0}, {'h', "t", "s", 0}, {'h', "a/x", "a/x", 0}}},
			want:   []string{"drwxr-xr-x a", "-rw-r--r-- a/x 1", "L s -> a/x", "L t -> a/x", "-rw-r--r-- y 1"},
		},
		"whiteouts take away what is below": {
			layers: [][]entry{
				{{'f', "a/x", "1", 0}, {'f', "a/y", "1", 0}, {'f', "b/x", "1", 0}, {'f', "c/d/x", "1", 0}, {'f', "gone", "1", 0}},
				{{'f', ".wh.gone", "", 0}, {'f', "a/.wh.x", "", 0}, {'f', "b/new", "2", 0}, {'f', "b/.wh..wh..opq", "", 0}, {'f', "c/d/new", "2", 0}, {'f', ".wh.c", "", 0}},
			},
			want: []string{"drwxr-xr-x a", "-rw-r--r-- a/y 1", "drwxr-xr-x b", "-rw-r--r-- b/new 2", "drwxr-xr-x c", "drwxr-xr-x c/d", "-rw-r--r-- c/d/new 2"},
		},
		"whiteouts through a link stay inside": {
			layers: [][]entry{{{'l', "x", "/", 0}, {'f', "y", "1", 0}}, {{'f', "x/.wh.y", "", 0}}},
			want:   []string{"L x -> /"},
		},
		"dots lead out":             {layers: [][]entry{{{'f', "a/../../x", "x", 0}}}, code: cove.Invalid},
		"dots of a link's target":   {layers: [][]entry{{{'h', "x", "../../etc/passwd", 0}}}, code: cove.Invalid},
		"a second name of nothing":  {layers: [][]entry{{{'h', "x", "y", 0}}}, code: cove.Invalid},
		"a second name of the host": {layers: [][]entry{{{'l', "e", "/etc", 0}, {'h', "x", "e/passwd", 0}}}, code: cove.Invalid},
		"links in a circle":         {layers: [][]entry{{{'l', "a", "b", 0}, {'l', "b", "a", 0}, {'f', "a/x", "x", 0}}}, code: cove.Invalid},
		"below a file":              {layers: [][]entry{{{'f', "a", "", 0}, {'f', "a/b", "", 0}}}, code: cove.Invalid},
		"a name that is too long":   {layers: [][]entry{{{'f', strings.Repeat("x", 300), "", 0}}}, code: cove.Invalid},
		"a path that is too long":   {layers: [][]entry{{{'f', strings.Repeat("x/", 3000) + "x", "", 0}}}, code: cove.Invalid},
		"a link to nothing":         {layers: [][]entry{{{'l', "x", "", 0}}}, code: cove.Invalid},
		"nothing to take away":      {layers: [][]entry{{{'f', ".wh.", "", 0}}}, code: cove.Invalid},
		"too many":                  {layers: [][]entry{{{'d', "1", "", 0}, {'d', "2", "", 0}, {'d', "3", "", 0}, {'d', "4", "", 0}, {'d', "5", "", 0}, {'d', "6", "", 0}, {'d', "7", "", 0}, {'d', "8", "", 0}, {'d', "9", "", 0}, {'d', "10", "", 0}, {'d', "11", "", 0}, {'d', "12", "", 0}, {'d', "13", "", 0}}}, code: cove.Exhausted},
		"too large":                 {layers: [][]entry{{{'f', "1", strings.Repeat("x", 700), 0}}, {{'f', "1", strings.Repeat("x", 700), 0}}}, code: cove.Exhausted},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			dir := filepath.Join(top, "tree")
			must(t, os.Mkdir(dir, 0o755))
			u := rootfs.NewUnpacker(openRoot(t, dir), rootfs.Bounds{Entries: 12, Size: 1024})
			var err error
			for _, l := range c.layers {
				err = errors.Join(err, u.Layer(t.Context(), bytes.NewReader(tarOf(t, l...))))
			}
			if got := cove.CodeOf(err); got != c.code {
				t.Fatalf("code %q of %v, want %q", got, err, c.code)
			}
			if beside, _ := os.ReadDir(top); len(beside) != 1 {
				t.Errorf("something was written beside the tree: %v", beside)
			}
			if c.code != "" {
				return
			}
			if diff := cmp.Diff(c.want, shape(t, dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnpackDamaged(t *testing.T) {
	whole := tarOf(t, entry{'f', "x", strings.Repeat("x", 2000), 0})
	for _, data := range [][]byte{whole[:700], []byte(strings.Repeat("rubbish ", 200))} {
		u := rootfs.NewUnpacker(openRoot(t, t.TempDir()), rootfs.DefaultBounds)
		if err := u.Layer(t.Context(), bytes.NewReader(data)); !errors.Is(err, cove.Invalid) {
			t.Errorf("got %v, want invalid", err)
		}
	}
}

// A tree stays a tree, whatever is unpacked: nothing appears beside it, and
// nothing in it is anything but a directory, a file or a link.
func FuzzUnpack(f *testing.F) {
	f.Add(tarOf(f, entry{'f', "a/b", "x", 0}, entry{'l', "c", "../..", 0}, entry{'f', "c/d", "y", 0}, entry{'h', "e", "a/b", 0}, entry{'f', ".wh.a", "", 0}))
	f.Add(tarOf(f, entry{'l', "a", "/", 0}, entry{'f', "a/a/.wh..wh..opq", "", 0}, entry{'c', "d", "", 0}))
	f.Fuzz(func(t *testing.T, data []byte) {
		top := t.TempDir()
		dir := filepath.Join(top, "a/b/tree")
		must(t, os.MkdirAll(dir, 0o755))
		root := openRoot(t, dir)
		u := rootfs.NewUnpacker(root, rootfs.Bounds{Entries: 64, Size: 1 << 20})
		err := errors.Join(u.Layer(t.Context(), bytes.NewReader(data)), u.Layer(t.Context(), bytes.NewReader(data)))
		if cove.CodeOf(err) == cove.Internal {
			t.Logf("unclear: %v", err)
		}
		if err == nil {
			must(t, rootfs.Tidy(root))
			if _, _, _, err := rootfs.Digest(t.Context(), root); err != nil {
				t.Error(err)
			}
		}
		for _, d := range []string{top, filepath.Join(top, "a"), filepath.Join(top, "a/b")} {
			if entries, _ := os.ReadDir(d); len(entries) != 1 {
				t.Errorf("%s has %v", d, entries)
			}
		}
		for _, line := range shape(t, dir) {
			if line[0] != 'd' && line[0] != '-' && line[0] != 'L' || strings.HasPrefix(line, "d") && !strings.HasPrefix(line, "drwxr-xr-x") {
				t.Errorf("the tree has %s", line)
			}
		}
	})
}
