package cli_test

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/cli"
)

func TestCopyBothWays(t *testing.T) {
	b := served(t)
	id := b.id("sandbox", "create")
	dir := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	write(t, at("f"), "one")
	write(t, at("tree", "a"), "aa")
	write(t, at("tree", "sub", "b"), "bb")
	if err := os.Chmod(at("tree", "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", at("tree", "link")); err != nil {
		t.Fatal(err)
	}
	inside := func(want string, words ...string) {
		t.Helper()
		if got := b.ok(append([]string{"sandbox", "exec", id, "--"}, words...)...); got != want {
			t.Errorf("%v: %q, want %q", words, got, want)
		}
	}
	b.ok("sandbox", "cp", at("f"), id+":g")
	inside("one", "cat", "g")
	b.ok("sandbox", "cp", at("f"), id+":new/")
	inside("one", "cat", "new/f")
	b.ok("sandbox", "cp", at("f"), id+":new")
	inside("one", "cat", "new/f")
	b.ok("sandbox", "cp", at("tree"), id+":copy")
	inside("bb", "cat", "copy/sub/b")
	inside("a\n", "readlink", "copy/link")
	b.ok("sandbox", "cp", at("tree"), id+":copy")
	inside("aa", "cat", "copy/tree/a")
	b.ok("sandbox", "cp", at("f"), id+":")
	inside("one", "cat", "/workspace/f")
	b.input("typed").ok("sandbox", "cp", "-", id+":t")
	inside("typed", "cat", "t")

	b.ok("sandbox", "cp", id+":g", at("back"))
	b.ok("sandbox", "cp", id+":copy/a", dir)
	b.ok("sandbox", "cp", id+":copy", at("out"))
	b.ok("sandbox", "cp", id+":copy/sub", at("out"))
	got := map[string]string{}
	for _, f := range []string{"back", "a", "out/a", "out/sub/b", "out/link", "out/tree/sub/b"} {
		got[f] = read(t, at(f))
	}
	want := map[string]string{"back": "one", "a": "aa", "out/a": "aa", "out/sub/b": "bb", "out/link": "aa", "out/tree/sub/b": "bb"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(at("out", "a")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if got := b.ok("sandbox", "cp", id+":g", "-"); got != "one" {
		t.Errorf("to standard output: %q", got)
	}
	stream := b.ok("sandbox", "cp", id+":copy/sub", "-")
	if h, err := tar.NewReader(strings.NewReader(stream)).Next(); err != nil || strings.Trim(h.Name, "./") != "b" {
		t.Errorf("a directory to standard output: %v, %v", h, err)
	}
	b.input(stream).ok("sandbox", "cp", "-", id+":new")
	inside("bb", "cat", "new/b")
}

func TestCopiesThatCannotBe(t *testing.T) {
	b := served(t)
	id := b.id("sandbox", "create")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "x")
	b.ok("sandbox", "exec", id, "--", "bash", "-c", "echo x > f; mkdir d; echo y > d/g")
	b.fails(5, "/nowhere on this machine: no such file or directory", "sandbox", "cp", "/nowhere", id+":x")
	b.fails(5, "", "sandbox", "cp", id+":nowhere", "-")
	b.fails(2, "leaves the workspace", "sandbox", "cp", id+":/etc/passwd", "-")
	b.fails(2, "leaves the workspace", "sandbox", "cp", filepath.Join(dir, "file"), id+":../../etc/x")
	b.fails(5, "on this machine: no such file or directory", "sandbox", "cp", id+":f", filepath.Join(dir, "none", "f"))
	b.fails(69, "on this machine: not a directory", "sandbox", "cp", id+":d", filepath.Join(dir, "file", "below"))
	if err := os.Symlink("/etc", filepath.Join(dir, "etc")); err != nil {
		t.Fatal(err)
	}
	// A link goes in as it is, and leads nowhere that is not in the sandbox.
	b.ok("sandbox", "cp", dir, id+":out")
	b.ok("sandbox", "exec", id, "--", "cat", "out/file")
	b.fails(5, "does not exist", "sandbox", "cp", id+":out/etc/passwd", "-")
	if names, _ := filepath.Glob(filepath.Join(dir, ".cove-*")); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
}

// entry is one thing in a hostile archive.
type entry struct {
	name, link, body string
	kind             byte
}

func archive(t *testing.T, entries ...entry) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Linkname: e.link, Typeflag: e.kind, Mode: 0o7777, Size: int64(len(e.body))}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func TestHostileArchivesStayInside(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "in")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(base, "victim"), "safe")
	var notes bytes.Buffer
	err := cli.Unpack(dir, archive(t,
		entry{name: "./", kind: tar.TypeDir},
		entry{name: "../victim", kind: tar.TypeReg, body: "owned"},
		entry{name: "/victim", kind: tar.TypeReg, body: "owned"},
		entry{name: "up", kind: tar.TypeSymlink, link: ".."},
		entry{name: "abs", kind: tar.TypeSymlink, link: base},
		entry{name: "dev", kind: tar.TypeChar},
		entry{name: "hard", kind: tar.TypeLink, link: "../victim"},
		entry{name: "d", kind: tar.TypeDir},
		entry{name: "d/self", kind: tar.TypeSymlink, link: "."},
		entry{name: "suid", kind: tar.TypeReg, body: "x"},
		entry{name: "deep/er/f", kind: tar.TypeReg, body: "y"},
	), &notes)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(base, "victim")); got != "safe" {
		t.Errorf("the file outside holds %q", got)
	}
	if info, err := os.Stat(filepath.Join(dir, "suid")); err != nil || info.Mode() != 0o755 {
		t.Errorf("suid: %v, %v", info.Mode(), err)
	}
	for _, name := range []string{"up", "abs", "dev", "hard", "victim"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was made", name)
		}
	}
	if got := strings.Count(notes.String(), "left out"); got != 6 {
		t.Errorf("%d notes:\n%s", got, notes.String())
	}
	if err := cli.Unpack(dir, archive(t, entry{name: "suid/x", kind: tar.TypeReg, body: "x"}), &notes); err == nil {
		t.Error("a file became a directory")
	}
	if err := cli.Unpack(dir, archive(t, entry{name: "d", kind: tar.TypeReg, body: "x"}), &notes); err == nil {
		t.Error("a directory with files became a file")
	}
	if err := cli.Unpack(dir, strings.NewReader("no tar"), &notes); err == nil {
		t.Error("no tar passes")
	}
}
