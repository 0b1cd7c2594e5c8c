package providertest

import (
	"io/fs"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
)

func fileMode(m uint32) fs.FileMode { return fs.FileMode(m) }

func listTests() []test {
	return []test{
		{"depth_and_order", listDepth},
		{"entries_are_described", listDescribes},
		{"links_are_not_followed", listLinks},
		{"depth_out_of_range_is_invalid", listBadDepth},
		{"a_file_is_invalid", listFile},
		{"stops_when_asked", listStops},
		{"many_entries", listMany},
	}
}

// listed are the names below the workspace, directories with a slash.
func (e *env) listed(s cove.Sandbox, dir string, depth int) []string {
	e.Helper()
	var names []string
	for i, err := range s.Files().List(e.ctx(), dir, depth) {
		e.must(err, "list")
		name := strings.TrimPrefix(i.Path, cove.WorkspacePath+"/")
		if i.Mode.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	return names
}

func same(e *env, got, want []string, what string) {
	e.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		e.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func listDepth(e *env) {
	s := e.sandbox()
	for _, name := range []string{"b", "a/x", "a/y/z/deep", "a-b", "c/1", "B"} {
		e.write(s, name, "")
	}
	same(e, e.listed(s, ".", 1), []string{"B", "a/", "a-b", "b", "c/"}, "depth 1")
	same(e, e.listed(s, ".", 2), []string{"B", "a/", "a/x", "a/y/", "a-b", "b", "c/", "c/1"}, "depth 2")
	same(e, e.listed(s, "a", cove.MaxListDepth), []string{"a/x", "a/y/", "a/y/z/", "a/y/z/deep"}, "the greatest depth")
	e.must(s.Files().Mkdir(e.ctx(), "empty"), "mkdir")
	same(e, e.listed(s, "empty", 3), nil, "an empty directory")
}

func listDescribes(e *env) {
	s := e.sandbox()
	e.must(s.Files().Write(e.ctx(), "d/f", reader("12345"), 0o600), "write")
	for i, err := range s.Files().List(e.ctx(), "d", 1) {
		e.must(err, "list")
		one, err := s.Files().Stat(e.ctx(), "d/f")
		e.must(err, "stat")
		if diff := cmp.Diff(one, i); diff != "" {
			e.Errorf("List and Stat differ (-stat +list):\n%s", diff)
		}
		equal(e, i.Path, "/workspace/d/f", "the path")
		equal(e, i.Size, 5, "the size")
	}
}

func listLinks(e *env) {
	s := e.sandbox()
	e.write(s, "real/f", "")
	e.prints(s, "", "ln -s real link; ln -s .. real/up")
	same(e, e.listed(s, ".", 4), []string{"link", "real/", "real/f", "real/up"}, "a tree with links")
	same(e, e.listed(s, "link", 1), []string{"real/f", "real/up"}, "a link to a directory, named itself")
}

func listBadDepth(e *env) {
	s := e.sandbox()
	for _, depth := range []int{0, -1, cove.MaxListDepth + 1} {
		n := 0
		for _, err := range s.Files().List(e.ctx(), ".", depth) {
			n++
			e.wants(cove.Invalid, err, "a depth out of range")
		}
		equal(e, n, 1, "the number of answers")
	}
}

func listFile(e *env) {
	s := e.sandbox()
	e.write(s, "file", "")
	n := 0
	for _, err := range s.Files().List(e.ctx(), "file", 1) {
		n++
		e.wants(cove.Invalid, err, "listing a file")
	}
	equal(e, n, 1, "the number of answers")
}

func listStops(e *env) {
	s := e.sandbox()
	e.prints(s, "", "mkdir d; touch a b c d/x d/y")
	n := 0
	for _, err := range s.Files().List(e.ctx(), ".", 2) {
		e.must(err, "list")
		if n++; n == 2 {
			break
		}
	}
	equal(e, n, 2, "the entries before the break")
}

func listMany(e *env) {
	s := e.sandbox()
	e.prints(s, "", "i=0; while [ $i -lt 1500 ]; do : > f$i; i=$((i+1)); done")
	equal(e, len(e.listed(s, ".", 1)), 1500, "the number of entries")
}
