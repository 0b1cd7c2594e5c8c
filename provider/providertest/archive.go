package providertest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// entry is one part of an archive.
type entry struct {
	name, body, link string
	kind             byte // 0 means a file
	mode             int64
	size             int64 // declared, if it is not that of the body
}

// pack writes an archive, lies included.
func pack(e *env, entries ...entry) []byte {
	e.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, x := range entries {
		h := &tar.Header{Name: x.name, Linkname: x.link, Typeflag: x.kind, Mode: x.mode, Size: int64(len(x.body)), ModTime: time.Unix(1700000000, 0)}
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if x.size != 0 {
			h.Size = x.size
		}
		e.must(w.WriteHeader(h), "write a header")
		_, err := io.WriteString(w, x.body)
		e.must(err, "write a body")
		if x.size != 0 {
			return buf.Bytes() // the rest is missing
		}
	}
	e.must(w.Close(), "close the archive")
	return buf.Bytes()
}

// unpacked lists the entries of an archive.
func (e *env) unpacked(r io.Reader) map[string]entry {
	e.Helper()
	all := map[string]entry{}
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		e.must(err, "read an archive")
		body, err := io.ReadAll(in)
		e.must(err, "read an entry")
		name := strings.TrimSuffix(strings.TrimPrefix(h.Name, "./"), "/")
		if name != "" && name != "." {
			all[name] = entry{name: name, body: string(body), link: h.Linkname, kind: h.Typeflag, mode: h.Mode & 0o777}
		}
	}
}

func archiveTests() []test {
	return []test{
		{"holds_files_directories_and_links", archiveHolds},
		{"goes_round", archiveRound},
		{"keeps_hard_links", archiveHardLinks},
		{"keeps_holes", archiveSparse},
		{"keeps_pipes_and_modes", archiveKinds},
		{"keeps_attributes", archiveAttributes},
		{"of_an_empty_directory", archiveEmpty},
		{"of_a_file_is_invalid", archiveFile},
		{"stream_can_be_left_early", archiveLeft},
		{"ends_with_its_context", archiveCanceled},
		{"unpack_makes_the_directory", unpackMakes},
		{"unpack_over_what_is_there", unpackOver},
		{"last_of_two_names_wins", unpackTwice},
		{"unpack_keeps_modes_and_no_more", unpackModes},
	}
}

func (e *env) archive(s cove.Sandbox, dir string) []byte {
	e.Helper()
	r, err := s.Files().Archive(e.ctx(), dir)
	e.must(err, "archive")
	b, err := io.ReadAll(r)
	e.must(err, "read the archive")
	e.check(r.Close(), "close the archive")
	return b
}

func archiveHolds(e *env) {
	s := e.sandbox()
	e.must(s.Files().Write(e.ctx(), "d/run", reader("#!/bin/sh\n"), 0o755), "write")
	e.write(s, "d/sub/data", "content")
	e.prints(s, "", "mkdir d/empty; ln -s sub/data d/link")
	all := e.unpacked(bytes.NewReader(e.archive(s, "d")))
	equal(e, len(all), 5, "the number of entries")
	equal(e, all["run"], entry{name: "run", body: "#!/bin/sh\n", kind: tar.TypeReg, mode: 0o755}, "a file")
	equal(e, all["sub/data"].body, "content", "a file in a directory")
	equal(e, all["link"].link, "sub/data", "a link")
	equal(e, all["empty"].kind, tar.TypeDir, "an empty directory")
}

func archiveRound(e *env) {
	a, b := e.sandbox(), e.sandbox()
	for _, name := range oddities() {
		e.write(a, name, name)
	}
	e.must(a.Files().Write(e.ctx(), "big", bytes.NewReader(pattern(3<<20)), 0o644), "write")
	e.prints(a, "", "mkdir -p x/y; ln -s ../big x/link; echo deep > x/y/z")
	e.must(b.Files().Unpack(e.ctx(), ".", bytes.NewReader(e.archive(a, "."))), "unpack")
	same(e, e.listed(b, ".", 8), e.listed(a, ".", 8), "the two trees")
	for _, name := range append(oddities(), "big", "x/link", "x/y/z") {
		if e.read(a, name) != e.read(b, name) {
			e.Errorf("%q differs", name)
		}
	}
}

func archiveEmpty(e *env) {
	s := e.sandbox()
	equal(e, len(e.unpacked(bytes.NewReader(e.archive(s, ".")))), 0, "the number of entries")
}

func archiveFile(e *env) {
	s := e.sandbox()
	e.write(s, "file", "")
	_, err := s.Files().Archive(e.ctx(), "file")
	e.wants(cove.Invalid, err, "an archive of a file")
}

func archiveLeft(e *env) {
	s := e.sandbox()
	e.must(s.Files().Write(e.ctx(), "big", bytes.NewReader(pattern(2<<20)), 0o644), "write")
	r, err := s.Files().Archive(e.ctx(), ".")
	e.must(err, "archive")
	_, err = io.ReadFull(r, make([]byte, 10))
	e.must(err, "read a little")
	e.check(r.Close(), "close early")
	e.check(s.Destroy(e.ctx()), "destroy")
}

func archiveCanceled(e *env) {
	s := e.sandbox()
	e.must(s.Files().Write(e.ctx(), "big", bytes.NewReader(pattern(2<<20)), 0o644), "write")
	ctx, cancel := context.WithCancel(e.ctx())
	r, err := s.Files().Archive(ctx, ".")
	e.must(err, "archive")
	cancel()
	if _, err := io.Copy(io.Discard, r); err == nil {
		e.Errorf("an archive whose context ended is complete")
	}
	e.check(r.Close(), "close")
}

func unpackMakes(e *env) {
	s := e.sandbox()
	tarball := pack(e, entry{name: "a/b/c", body: "deep"}, entry{name: "top", body: "top"}, entry{name: "e/", kind: tar.TypeDir, mode: 0o755})
	e.must(s.Files().Unpack(e.ctx(), "new/place", bytes.NewReader(tarball)), "unpack")
	same(e, e.listed(s, "new/place", 5), []string{"new/place/a/", "new/place/a/b/", "new/place/a/b/c", "new/place/e/", "new/place/top"}, "the tree")
	equal(e, e.read(s, "new/place/a/b/c"), "deep", "a file")
	e.must(s.Files().Unpack(e.ctx(), "empty", bytes.NewReader(pack(e))), "unpack nothing")
	e.must(s.Files().Unpack(e.ctx(), "empty", bytes.NewReader(pack(e, entry{name: "./", kind: tar.TypeDir, mode: 0o700}, entry{name: "./x"}))), "unpack with a dot")
	e.prints(s, "x\n", "ls empty")
}

func unpackOver(e *env) {
	s := e.sandbox()
	e.write(s, "d/old", "old")
	e.write(s, "d/both", "old")
	e.prints(s, "", "ln -s old d/link")
	e.must(s.Files().Unpack(e.ctx(), "d", bytes.NewReader(pack(e, entry{name: "both", body: "new"}, entry{name: "link", body: "a file now"}))), "unpack")
	equal(e, e.read(s, "d/both"), "new", "a file that was there")
	equal(e, e.read(s, "d/old"), "old", "what a link pointed to")
	equal(e, e.read(s, "d/link"), "a file now", "the file in the place of the link")
}

func unpackTwice(e *env) {
	s := e.sandbox()
	e.must(s.Files().Unpack(e.ctx(), ".", bytes.NewReader(pack(e, entry{name: "f", body: "first"}, entry{name: "f", body: "second"}))), "unpack")
	equal(e, e.read(s, "f"), "second", "the file")
	e.write(s, "kept", "kept")
	twice := pack(e, entry{name: "x", link: "kept", kind: tar.TypeSymlink}, entry{name: "x", body: "through the link"})
	e.must(s.Files().Unpack(e.ctx(), ".", bytes.NewReader(twice)), "unpack")
	equal(e, e.read(s, "kept"), "kept", "what the link pointed to")
	equal(e, e.read(s, "x"), "through the link", "the file in the place of the link")
}

func unpackModes(e *env) {
	s := e.sandbox()
	e.must(s.Files().Unpack(e.ctx(), ".", bytes.NewReader(pack(e, entry{name: "tool", body: "#!/bin/sh\necho ran\n", mode: 0o4755}))), "unpack")
	i, err := s.Files().Stat(e.ctx(), "tool")
	e.must(err, "stat")
	equal(e, i.Mode, 0o755, "the mode, without setuid")
	e.prints(s, "ran\n", "./tool")
}
