package providertest

import (
	"archive/tar"
	"bytes"
	"io"
	"path/filepath"
	"strings"

	"github.com/cove-sandbox/cove"
)

func hostileArchiveTests() []test {
	var tests []test
	for _, h := range hostileArchives() {
		tests = append(tests, test{h.name, func(e *env) { e.refuses(h.entries) }})
	}
	return append(tests,
		test{"what_is_no_archive", noArchive},
		test{"archive_that_is_cut_short", cutArchive},
		test{"size_that_is_a_lie", lyingArchive},
		test{"file_through_a_link_that_was_there", unpackThroughLink},
		test{"links_that_stay_inside_are_fine", unpackGoodLinks},
		test{"links_that_point_out_are_only_text", unpackLinksOut},
	)
}

type hostileArchive struct {
	name    string
	entries []entry
}

// hostileArchives must be refused as Invalid, without a trace outside the
// directory. SECRET stands for a file of the host.
func hostileArchives() []hostileArchive {
	up := strings.Repeat("../", 30)
	one := func(name string, x entry) hostileArchive { return hostileArchive{name, []entry{x}} }
	return []hostileArchive{
		one("absolute_name", entry{name: "/workspace/escaped", body: "x"}),
		one("absolute_host_name", entry{name: "SECRET", body: "x"}),
		one("dots", entry{name: "../escaped", body: "x"}),
		one("dots_in_the_middle", entry{name: "a/../../escaped", body: "x"}),
		one("many_dots", entry{name: up + "SECRET", body: "x"}),
		one("directory_outside", entry{name: "../escaped/", kind: tar.TypeDir}),
		one("link_to_nothing", entry{name: "l", kind: tar.TypeSymlink}),
		one("hard_link_outside", entry{name: "l", link: "../kept", kind: tar.TypeLink}),
		one("hard_link_to_a_host_file", entry{name: "l", link: "SECRET", kind: tar.TypeLink}),
		one("character_device", entry{name: "dev", kind: tar.TypeChar}),
		one("block_device", entry{name: "dev", kind: tar.TypeBlock}),
		one("fifo", entry{name: "fifo", kind: tar.TypeFifo}),
		{"file_through_a_link", []entry{{name: "l", link: "..", kind: tar.TypeSymlink}, {name: "l/escaped", body: "x"}}},
		{"link_through_a_link", []entry{
			{name: "here", link: ".", kind: tar.TypeSymlink},
			{name: "here/l", link: "../escaped", kind: tar.TypeSymlink},
			{name: "l", body: "x"},
		}},
	}
}

// refuses unpacks a hostile archive and looks for damage.
func (e *env) refuses(entries []entry) {
	s := e.sandbox()
	secret := e.secret()
	e.write(s, "kept", "kept")
	list := make([]entry, len(entries))
	for i, x := range entries {
		x.name = strings.ReplaceAll(x.name, "SECRET", secret)
		x.link = strings.ReplaceAll(x.link, "SECRET", secret)
		list[i] = x
	}
	e.wants(cove.Invalid, s.Files().Unpack(e.ctx(), "box", bytes.NewReader(pack(e, list...))), "unpacking")
	e.unharmed(secret)
	equal(e, e.read(s, "kept"), "kept", "a file beside the directory")
	for _, name := range []string{"escaped", "/escaped", filepath.Dir(secret)} {
		_, err := s.Files().Stat(e.ctx(), name)
		e.wants(cove.NotFound, err, "what the archive wanted to make at "+name)
	}
	e.prints(s, "fine\n", "echo fine")
}

func noArchive(e *env) {
	s := e.sandbox()
	for what, content := range map[string][]byte{
		"random bytes": pattern(4096), "a text": []byte(strings.Repeat("this is no archive\n", 100)), "a short text": []byte("short"),
	} {
		e.wants(cove.Invalid, s.Files().Unpack(e.ctx(), ".", bytes.NewReader(content)), "unpacking "+what)
	}
	e.prints(s, "", "ls -A")
}

func cutArchive(e *env) {
	s := e.sandbox()
	whole := pack(e, entry{name: "first", body: "1"}, entry{name: "second", body: strings.Repeat("2", 5000)})
	e.wants(cove.Invalid, s.Files().Unpack(e.ctx(), ".", bytes.NewReader(whole[:len(whole)-4000])), "unpacking half an archive")
	_, err := s.Files().Stat(e.ctx(), "second")
	e.wants(cove.NotFound, err, "the file that was cut")
}

func lyingArchive(e *env) {
	s := e.sandbox()
	lie := pack(e, entry{name: "huge", body: "little", size: 1 << 42})
	err := s.Files().Unpack(e.ctx(), ".", bytes.NewReader(lie))
	if code := cove.CodeOf(err); code != cove.Invalid && code != cove.Exhausted {
		e.Errorf("unpacking a file that says it has 4 TiB gives %v", err)
	}
	_, err = s.Files().Stat(e.ctx(), "huge")
	e.wants(cove.NotFound, err, "the file")
}

func unpackThroughLink(e *env) {
	s := e.sandbox()
	e.write(s, "kept", "kept")
	e.prints(s, "", "mkdir box; ln -s /workspace box/out; ln -s ../kept box/file")
	err := s.Files().Unpack(e.ctx(), "box", bytes.NewReader(pack(e, entry{name: "out/escaped", body: "x"})))
	e.wants(cove.Invalid, err, "unpacking through a link that leads out")
	_, err = s.Files().Stat(e.ctx(), "escaped")
	e.wants(cove.NotFound, err, "the file outside")
	e.must(s.Files().Unpack(e.ctx(), "box", bytes.NewReader(pack(e, entry{name: "file", body: "x"}))), "unpack over a link")
	equal(e, e.read(s, "kept"), "kept", "what the link pointed to")
}

func unpackGoodLinks(e *env) {
	s := e.sandbox()
	good := pack(e,
		entry{name: "d/f", body: "content"},
		entry{name: "l", link: "d/f", kind: tar.TypeSymlink},
		entry{name: "d/back", link: "../l", kind: tar.TypeSymlink},
		entry{name: "dir", link: "d", kind: tar.TypeSymlink},
		entry{name: "hard", link: "d/f", kind: tar.TypeLink},
	)
	e.must(s.Files().Unpack(e.ctx(), "box", bytes.NewReader(good)), "unpack")
	for _, name := range []string{"box/l", "box/d/back", "box/dir/f", "box/hard"} {
		equal(e, e.read(s, name), "content", name)
	}
}

// unpackLinksOut: what a link points to is looked up inside the sandbox, so a
// link may say anything. A virtual environment is full of such links, and a
// workspace that was archived must come back as it was.
func unpackLinksOut(e *env) {
	s := e.sandbox()
	secret := e.secret()
	links := map[string]string{
		"absolute": "/usr/bin/env", "host": secret, "up": "..", "far": strings.Repeat("../", 30) + "etc/passwd", "loop": "loop", "dangling": "nowhere/at all",
	}
	var entries []entry
	for name, target := range links {
		entries = append(entries, entry{name: name, link: target, kind: tar.TypeSymlink})
	}
	e.must(s.Files().Unpack(e.ctx(), "box", bytes.NewReader(pack(e, entries...))), "unpack")
	r, err := s.Files().Archive(e.ctx(), "box")
	e.must(err, "archive")
	for name, x := range e.unpacked(r) {
		if x.kind == tar.TypeSymlink {
			equal(e, x.link, links[name], "where "+name+" points to")
			delete(links, name)
		}
	}
	e.must(r.Close(), "close the archive")
	if len(links) > 0 {
		e.Errorf("the links %v are not in the archive", links)
	}
	if r, err := s.Files().Read(e.ctx(), "box/host", 0, 0); err == nil {
		content, _ := io.ReadAll(r)
		_ = r.Close()
		e.Errorf("a link reaches a file of the host: %q", content)
	}
	e.unharmed(secret)
}
