package image_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/rootfs"
	"github.com/cove-sandbox/cove/internal/rootfs/image"
)

// file is one file of a tar; a name that ends in @ is a link to its text.
type file struct{ name, text string }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func tarOf(t testing.TB, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: 0o755, Size: int64(len(f.text)), Typeflag: tar.TypeReg}
		if name, link := strings.CutSuffix(f.name, "@"); link {
			h = &tar.Header{Name: name, Linkname: f.text, Typeflag: tar.TypeSymlink}
		}
		must(t, w.WriteHeader(h))
		if h.Typeflag == tar.TypeReg {
			_, err := w.Write([]byte(f.text))
			must(t, err)
		}
	}
	must(t, w.Close())
	return b.Bytes()
}

func zip(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	must(t, errors.Join(err, w.Close()))
	return b.Bytes()
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

func marshal(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	must(t, err)
	return string(data)
}

type object = map[string]any

func configOf(t testing.TB, diffs ...string) string {
	t.Helper()
	return marshal(t, object{
		"architecture": runtime.GOARCH, "os": "linux", "rootfs": object{"type": "layers", "diff_ids": diffs},
		"config": object{"Env": []string{"PATH=/opt/bin:/usr/bin:relative", "LANG=C.UTF-8", "HOME=/root", "bad name=x"}},
	})
}

var twoLayers = [][]file{
	{{"bin/app", "one"}, {"etc/passwd", "app:x:1000:1000::/:/bin/sh\n"}, {"old", "x"}},
	{{"bin/app", "two"}, {".wh.old", ""}},
}

// saved is an archive as docker save writes it.
func saved(t testing.TB, layers [][]file) []file {
	t.Helper()
	var parts []file
	var names, diffs []string
	for _, l := range layers {
		data := tarOf(t, l...)
		name := sum(data) + "/layer.tar"
		parts, names, diffs = append(parts, file{name, string(data)}), append(names, name), append(diffs, "sha256:"+sum(data))
	}
	cfg := configOf(t, diffs...)
	name := sum([]byte(cfg)) + ".json"
	return append(parts, file{name, cfg}, file{"manifest.json", marshal(t, []object{{"Config": name, "RepoTags": nil, "Layers": names}})})
}

// layout is an OCI layout, by path.
func layout(t testing.TB, layers [][]file, compress func(testing.TB, []byte) []byte) map[string]string {
	t.Helper()
	files := map[string]string{"oci-layout": `{"imageLayoutVersion":"1.0.0"}`}
	add := func(data []byte) object {
		files["blobs/sha256/"+sum(data)] = string(data)
		return object{"digest": "sha256:" + sum(data), "size": len(data)}
	}
	var list []object
	var diffs []string
	for _, l := range layers {
		data := tarOf(t, l...)
		diffs, list = append(diffs, "sha256:"+sum(data)), append(list, add(compress(t, data)))
	}
	m := add([]byte(marshal(t, object{"config": add([]byte(configOf(t, diffs...))), "layers": list})))
	m["platform"] = object{"os": "linux", "architecture": runtime.GOARCH}
	other := object{"digest": "sha256:" + strings.Repeat("0", 64), "size": 1, "platform": object{"os": "unknown", "architecture": "unknown"}}
	inner := add([]byte(marshal(t, object{"manifests": []object{other, m}})))
	files["index.json"] = marshal(t, object{"manifests": []object{inner}})
	return files
}

func writeDir(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

func writeFile(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.tar")
	must(t, os.WriteFile(path, data, 0o600))
	return path
}

func unpack(t testing.TB, file string, o image.Options) (string, image.Info, error) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer func() { _ = root.Close() }()
	info, err := image.Unpack(t.Context(), root, file, o)
	return dir, info, err
}

func plain(_ testing.TB, data []byte) []byte { return data }

func TestForms(t *testing.T) {
	inTar := func(files map[string]string) []byte {
		var list []file
		for name, text := range files {
			list = append(list, file{name, text})
		}
		return tarOf(t, list...)
	}
	shared := saved(t, twoLayers)
	shared = append(shared, file{"other/layer.tar@", "../" + shared[1].name})
	shared[3].text = strings.Replace(shared[3].text, shared[1].name, "other/layer.tar", 1)
	for name, path := range map[string]string{
		"docker save":            writeFile(t, tarOf(t, saved(t, twoLayers)...)),
		"docker save with links": writeFile(t, tarOf(t, shared...)),
		"layout":                 writeDir(t, layout(t, twoLayers, zip)),
		"layout uncompressed":    writeDir(t, layout(t, twoLayers, plain)),
		"layout in a tar":        writeFile(t, inTar(layout(t, twoLayers, zip))),
	} {
		t.Run(name, func(t *testing.T) {
			told := 0
			dir, info, err := unpack(t, path, image.Options{Tell: func(layer, layers int, _ cove.Bytes) {
				if layer < 1 || layer > layers || layers != 2 {
					t.Errorf("told of layer %d of %d", layer, layers)
				}
				told++
			}})
			must(t, err)
			if text, _ := os.ReadFile(filepath.Join(dir, "bin/app")); string(text) != "two" || told == 0 {
				t.Errorf("app is %q, told %d times", text, told)
			}
			if _, err := os.Lstat(filepath.Join(dir, "old")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("old is there: %v", err)
			}
			if text, _ := os.ReadFile(filepath.Join(dir, "etc/passwd")); !strings.Contains(string(text), "sandbox:x:1000:") || strings.Contains(string(text), "app:") {
				t.Errorf("the users are %q", text)
			}
			want := image.Info{Env: map[string]string{"LANG": "C.UTF-8"}, Path: []string{"/opt/bin", "/usr/bin"}, Layers: 2}
			if diff := cmp.Diff(want, info); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	good := saved(t, twoLayers)
	with := func(change func(parts []file) []file) string {
		return writeFile(t, tarOf(t, change(append([]file{}, good...))...))
	}
	changed := func(change func(files map[string]string)) string {
		files := layout(t, twoLayers, zip)
		change(files)
		return writeDir(t, files)
	}
	blobWith := func(files map[string]string, text string) string {
		for name, content := range files {
			if strings.HasPrefix(name, "blobs/") && strings.Contains(content, text) {
				return name
			}
		}
		t.Fatalf("no blob has %s", text)
		return ""
	}
	zstd := func(testing.TB, []byte) []byte { return []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0, 0, 0} }
	for name, c := range map[string]struct {
		path string
		code cove.Code
	}{
		"nothing":                {filepath.Join(t.TempDir(), "x"), cove.NotFound},
		"rubbish":                {writeFile(t, []byte(strings.Repeat("rubbish ", 100))), cove.Invalid},
		"compressed as a whole":  {writeFile(t, zip(t, tarOf(t, good...))), cove.Invalid},
		"empty":                  {writeFile(t, tarOf(t)), cove.Invalid},
		"two of one name":        {with(func(p []file) []file { return append(p, p[len(p)-1]) }), cove.Invalid},
		"two images":             {with(func(p []file) []file { p[3].text = "[{},{}]"; return p }), cove.Invalid},
		"no JSON":                {with(func(p []file) []file { p[3].text = "{"; return p }), cove.Invalid},
		"a layer that is not":    {with(func(p []file) []file { return p[1:] }), cove.Invalid},
		"another layer":          {with(func(p []file) []file { p[0].text = string(tarOf(t, file{"x", "y"})); return p }), cove.Invalid},
		"a layer cut off":        {with(func(p []file) []file { p[0].text = p[0].text[:700]; return p }), cove.Invalid},
		"another configuration":  {with(func(p []file) []file { p[2].text = strings.Replace(p[2].text, "C.UTF-8", "C.UTF-9", 1); return p }), cove.Invalid},
		"a circle":               {with(func(p []file) []file { p[0] = file{p[0].name + "@", "layer.tar"}; return p }), cove.Invalid},
		"a directory of nothing": {t.TempDir(), cove.Invalid},
		"layout 2":               {changed(func(f map[string]string) { f["oci-layout"] = `{"imageLayoutVersion":"2.0.0"}` }), cove.Unsupported},
		"no image for us":        {changed(func(f map[string]string) { f["index.json"] = `{"manifests":[]}` }), cove.Invalid},
		"a digest of no kind":    {changed(func(f map[string]string) { f["index.json"] = `{"manifests":[{"digest":"sha256:../../x","size":1}]}` }), cove.Invalid},
		"another manifest":       {changed(func(f map[string]string) { f[blobWith(f, `"layers":[`)] += " " }), cove.Invalid},
		"another blob":           {changed(func(f map[string]string) { n := blobWith(f, "\x1f\x8b"); f[n] = string(zip(t, tarOf(t))) }), cove.Invalid},
		"zstd":                   {writeDir(t, layout(t, twoLayers, zstd)), cove.Unsupported},
		"a bad gzip":             {writeDir(t, layout(t, twoLayers, func(testing.TB, []byte) []byte { return []byte{0x1f, 0x8b, 1, 2, 3} })), cove.Invalid},
		"dots":                   {writeFile(t, tarOf(t, saved(t, [][]file{{{"../x", ""}}})...)), cove.Invalid},
		"no layers":              {writeFile(t, tarOf(t, saved(t, nil)...)), cove.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := unpack(t, c.path, image.Options{}); !errors.Is(err, c.code) {
				t.Errorf("got %v, want %s", err, c.code)
			}
		})
	}
}

func TestOtherMachine(t *testing.T) {
	parts := saved(t, twoLayers)
	cfg := strings.Replace(parts[2].text, runtime.GOARCH, "m68k", 1)
	name := sum([]byte(cfg)) + ".json"
	parts[3].text = strings.Replace(parts[3].text, parts[2].name, name, 1)
	parts[2] = file{name, cfg}
	if _, _, err := unpack(t, writeFile(t, tarOf(t, parts...)), image.Options{}); !errors.Is(err, cove.Invalid) || !strings.Contains(err.Error(), "m68k") {
		t.Error(err)
	}
}

// What is small on the disk and large when unpacked is stopped at the bounds.
func TestBombs(t *testing.T) {
	zeros := strings.Repeat("\x00", 1<<20)
	bounds := rootfs.Bounds{Entries: 10, Size: 512 << 10}
	for name, path := range map[string]string{
		"a large file":       writeDir(t, layout(t, [][]file{{{"x", zeros}}}, zip)),
		"much after the end": writeDir(t, layout(t, [][]file{{{"x", "y"}}}, func(t testing.TB, data []byte) []byte { return zip(t, append(data, zeros...)) })),
	} {
		if _, _, err := unpack(t, path, image.Options{Bounds: bounds}); !errors.Is(err, cove.Exhausted) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLeaves(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	must(t, err)
	defer func() { _ = root.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := image.Unpack(ctx, root, writeFile(t, tarOf(t, saved(t, twoLayers)...)), image.Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Whatever an archive says, unpacking ends, and writes nowhere but in the tree.
func FuzzArchive(f *testing.F) {
	f.Add(tarOf(f, saved(f, twoLayers)...))
	f.Add(tarOf(f, file{"manifest.json", "[]"}))
	f.Add(tarOf(f, file{"oci-layout", `{"imageLayoutVersion":"1.0.0"}`}, file{"index.json", `{"manifests":[{}]}`}))
	f.Fuzz(func(t *testing.T, data []byte) {
		top := t.TempDir()
		tree := filepath.Join(top, "tree")
		must(t, os.Mkdir(tree, 0o755))
		path := filepath.Join(top, "image.tar")
		must(t, os.WriteFile(path, data, 0o600))
		root, err := os.OpenRoot(tree)
		must(t, err)
		defer func() { _ = root.Close() }()
		_, _ = image.Unpack(t.Context(), root, path, image.Options{Bounds: rootfs.Bounds{Entries: 64, Size: 1 << 20}})
		if entries, _ := os.ReadDir(top); len(entries) != 2 {
			t.Errorf("beside the tree: %v", entries)
		}
	})
}
