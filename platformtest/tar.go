package platformtest

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

func tarCases() []testCase {
	return []testCase{
		{"out_and_in", tarOutAndIn},
		{"links", tarLinks},
		{"hostile", tarHostile},
		{"broken", tarBroken},
	}
}

// entries reads a tar into names and contents.
func (r *rig) entries(body io.ReadCloser) map[string]string {
	r.t.Helper()
	got := map[string]string{}
	in := tar.NewReader(body)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		r.must(err, "read a tar")
		text, err := io.ReadAll(in)
		r.must(err, "read a file of a tar")
		if h.Typeflag == tar.TypeReg {
			got[strings.TrimPrefix(h.Name, "./")] = string(text)
		}
	}
	r.must(body.Close(), "close a tar")
	return got
}

func tarOutAndIn(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	one, two := r.session(p, cove.Spec{}).ID, r.session(p, cove.Spec{}).ID
	r.write(p, one, "dir/a", "text of a")
	r.write(p, one, "dir/sub/b", "text of b")
	r.write(p, one, "other", "not packed")
	body, err := p.Files(one).Archive(r.ctx, "dir")
	r.must(err, "archive")
	packed, err := io.ReadAll(body)
	r.must(err, "read an archive")
	r.must(body.Close(), "close an archive")
	want := map[string]string{"a": "text of a", "sub/b": "text of b"}
	same(t, "the archive", r.entries(io.NopCloser(bytes.NewReader(packed))), want)
	r.write(p, two, "into/kept", "kept")
	r.must(p.Files(two).Unpack(r.ctx, "into", bytes.NewReader(packed)), "unpack")
	same(t, "an unpacked file", r.read(p, two, "into/sub/b"), "text of b")
	same(t, "a file that was there before", r.read(p, two, "into/kept"), "kept")
	r.must(p.Files(two).Unpack(r.ctx, "fresh/dir", bytes.NewReader(packed)), "unpack into a directory that is not there yet")
	same(t, "an unpacked file", r.read(p, two, "fresh/dir/a"), "text of a")
}

func tarLinks(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	r.must(p.Files(id).Unpack(r.ctx, ".", tarball(
		&tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o755},
		&tar.Header{Name: "d/file", Mode: 0o644},
		&tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "d/file", Mode: 0o777},
		&tar.Header{Name: "dirlink", Typeflag: tar.TypeSymlink, Linkname: "d", Mode: 0o777},
	)), "unpack links that stay inside")
	same(t, "what is read through a link", r.read(p, id, "link"), "d/file")
	list := all(r, p.Files(id).List(r.ctx, ".", 3))
	at := slices.IndexFunc(list, func(f cove.FileInfo) bool { return f.Path == "/workspace/dirlink" })
	if at < 0 || list[at].Link != "d" || list[at].Mode.Type() != fs.ModeSymlink {
		t.Errorf("a link is listed as %+v", list)
	}
	for _, f := range list {
		if strings.HasPrefix(f.Path, "/workspace/dirlink/") {
			t.Errorf("List followed a link to %s", f.Path)
		}
	}
	r.must(p.Files(id).Remove(r.ctx, "dirlink"), "remove a link")
	same(t, "the file behind a removed link", r.read(p, id, "d/file"), "d/file")
}

// tarHostile: an archive that reaches out of its directory is refused and
// leaves nothing outside of it.
func tarHostile(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	r.write(p, id, "victim", "safe")
	evil := map[string][]*tar.Header{
		"parent":        {{Name: "../victim", Mode: 0o644}},
		"deep parent":   {{Name: "a/b/../../../victim", Mode: 0o644}},
		"absolute":      {{Name: "/workspace/victim", Mode: 0o644}},
		"through links": {{Name: "l", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "l/victim", Mode: 0o644}},
		"hard link":     {{Name: "l", Typeflag: tar.TypeLink, Linkname: "../victim"}},
		"device":        {{Name: "dev", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}},
		"block device":  {{Name: "dev", Typeflag: tar.TypeBlock, Devmajor: 8}},
	}
	for name, headers := range evil {
		if err := p.Files(id).Unpack(r.ctx, "into", tarball(headers...)); cove.CodeOf(err) != cove.Invalid {
			t.Errorf("%s: %v; want invalid", name, err)
		}
	}
	same(t, "the file outside", r.read(p, id, "victim"), "safe")
}

func tarBroken(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	wantCode(t, p.Files(id).Unpack(r.ctx, "into", strings.NewReader(strings.Repeat("not a tar ", 200))), cove.Invalid)
	r.write(p, id, "file", "x")
	wantCode(t, p.Files(id).Unpack(r.ctx, "file", tarball(&tar.Header{Name: "a", Mode: 0o644})), cove.Invalid, cove.Conflict)
}

// dirNames lists a directory of the host.
func dirNames(r *rig, dir string) []string {
	r.t.Helper()
	list, err := os.ReadDir(dir)
	r.must(err, "read a directory")
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name()
	}
	return names
}
