package local_test

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// tree makes files below a directory: a name that ends with a slash is a
// directory, a text that starts with -> a link, one with #! a program.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	top := t.TempDir()
	for name, text := range files {
		full := filepath.Join(top, name)
		must(t, os.MkdirAll(filepath.Dir(full), 0o755))
		to, isLink := strings.CutPrefix(text, "->")
		switch {
		case strings.HasSuffix(name, "/"):
			must(t, os.MkdirAll(full, 0o755))
		case isLink:
			must(t, os.Symlink(strings.ReplaceAll(to, "TOP", top), full))
		default:
			must(t, os.WriteFile(full, []byte(text), 0o755))
		}
	}
	return top
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// added is what a host's own things put into a root.
func added(t *testing.T, top string) (links []fence.Link, files []fence.File, binds []fence.Bind, dirs []string) {
	t.Helper()
	usual, got := local.NewRoot("/no/such/host", "/stage"), local.NewRoot(top, "/stage")
	for _, d := range got.Dirs[len(usual.Dirs):] {
		dirs = append(dirs, d.Path)
	}
	for _, b := range got.Binds {
		b.Source = strings.TrimPrefix(b.Source, top)
		binds = append(binds, b)
	}
	return got.Links[len(usual.Links):], got.Files[len(usual.Files):], binds, dirs
}

func TestRootOfAHost(t *testing.T) {
	top := tree(t, map[string]string{
		"usr/bin/":            "",
		"bin":                 "->usr/bin",
		"lib/":                "",
		"sbin":                "a file",
		"etc/alternatives/x":  "",
		"etc/ld.so.cache":     "cache",
		"etc/pki/tls/certs/":  "",
		"etc/certs/":          "",
		"etc/ssl/certs":       "->../certs",
		"etc/ssl/openssl.cnf": "conf",
		"etc/ssl/private/key": "secret",
		"etc/python3.12/":     "",
		"etc/java-17":         "->/no/such",
		"etc/shadow":          "secret",
		"etc/passwd":          "somebody",
		"etc/zone":            "zone",
		"etc/localtime":       "->zone",
		"etc/mime.types":      strings.Repeat("x", local.MostCopied+1),
		"etc/protocols/":      "",
		"etc/services":        strings.Repeat("x", local.MostCopied),
	})
	links, files, binds, dirs := added(t, top)
	if want := []fence.Link{{Path: "/bin", To: "usr/bin"}}; !cmp.Equal(want, links) {
		t.Errorf("links %+v", links)
	}
	if want := []fence.Bind{
		{Source: "/usr", Path: "/usr", Dir: true},
		{Source: "/lib", Path: "/lib", Dir: true},
		{Source: "/etc/alternatives", Path: "/etc/alternatives", Dir: true},
		{Source: "/etc/ld.so.cache", Path: "/etc/ld.so.cache"},
		{Source: "/etc/pki/tls/certs", Path: "/etc/pki/tls/certs", Dir: true},
		{Source: "/etc/certs", Path: "/etc/ssl/certs", Dir: true},
		{Source: "/etc/python3.12", Path: "/etc/python3.12", Dir: true},
	}; !cmp.Equal(want, binds) {
		t.Errorf("binds (-want +got):\n%s", cmp.Diff(want, binds))
	}
	if want := []fence.File{
		{Path: "/etc/localtime", Text: []byte("zone")},
		{Path: "/etc/services", Text: bytes.Repeat([]byte("x"), local.MostCopied)},
		{Path: "/etc/ssl/openssl.cnf", Text: []byte("conf")},
	}; !cmp.Equal(want, files) {
		t.Errorf("files (-want +got):\n%s", cmp.Diff(want, files))
	}
	if want := []string{"/etc/pki", "/etc/pki/tls"}; !cmp.Equal(want, dirs) {
		t.Errorf("directories %v", dirs)
	}
}

func TestCopiesAreBounded(t *testing.T) {
	large := strings.Repeat("x", 20<<10)
	_, files, _, _ := added(t, tree(t, map[string]string{
		"etc/bash.bashrc": large, "etc/inputrc": large, "etc/ld.so.conf": large, "etc/localtime": large, "etc/timezone": "UTC\n",
	}))
	total, last := 0, ""
	for _, f := range files {
		total += len(f.Text)
		last = f.Path
	}
	if len(files) != 4 || total > local.AllCopied || last != "/etc/timezone" {
		t.Errorf("%d files with %d bytes, the last is %s", len(files), total, last)
	}
}

// TestOwnRoot: what the root of this very host needs comes in an order in which
// it can be made.
func TestOwnRoot(t *testing.T) {
	r := local.NewRoot("/", "/stage")
	made := []string{"/"}
	for _, d := range r.Dirs {
		if !slices.Contains(made, path.Dir(d.Path)) {
			t.Errorf("%s comes before what is above it", d.Path)
		}
		made = append(made, d.Path)
	}
	for _, p := range names(r) {
		if !slices.Contains(made, path.Dir(p)) {
			t.Errorf("nothing is above %s", p)
		}
	}
	for _, f := range r.Files {
		for _, secret := range []string{"shadow", "machine-id", "ssh"} {
			if strings.Contains(f.Path, secret) {
				t.Errorf("the root has %s", f.Path)
			}
		}
	}
}

func names(r fence.Root) (all []string) {
	for _, l := range r.Links {
		all = append(all, l.Path)
	}
	for _, f := range r.Files {
		all = append(all, f.Path)
	}
	for _, b := range r.Binds {
		all = append(all, b.Path)
	}
	return all
}

func TestAddParents(t *testing.T) {
	r := &fence.Root{Dirs: []fence.Dir{{Path: "/a", Mode: 0o711}}}
	for _, p := range []string{"/a/b/c/d", "/a/b/x", "/top", "/e/f"} {
		local.AddParents(r, p)
	}
	want := []fence.Dir{{Path: "/a", Mode: 0o711}, {Path: "/a/b", Mode: 0o755}, {Path: "/a/b/c", Mode: 0o755}, {Path: "/e", Mode: 0o755}}
	if d := cmp.Diff(want, r.Dirs); d != "" {
		t.Errorf("directories (-want +got):\n%s", d)
	}
}
