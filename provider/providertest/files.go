package providertest

import (
	"bytes"
	"context"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

func fileTests() []test {
	return []test{
		{"write_read_stat", writeReadStat},
		{"programs_and_files_see_the_same", sameFiles},
		{"read_ranges", readRanges},
		{"read_a_big_file", readBig},
		{"read_what_is_no_file", readNoFile},
		{"stat_a_link", statLink},
		{"owners_and_attributes", attributes},
		{"mkdir", mkdir},
		{"move", move},
		{"move_what_cannot_be", moveBad},
		{"remove", remove},
		{"remove_the_workspace_is_invalid", removeWorkspace},
		{"missing_is_not_found", missing},
		{"canceled_calls", canceledFiles},
	}
}

func writeReadStat(e *env) {
	s := e.sandbox()
	begun := time.Now().Add(-time.Hour) // clocks may differ a little
	e.write(s, "dir/sub/file.txt", "content")
	equal(e, e.read(s, "dir/sub/file.txt"), "content", "the file")
	equal(e, e.read(s, "/workspace/dir/sub/file.txt"), "content", "the file by its whole name")
	i, err := s.Files().Stat(e.ctx(), "dir/sub/file.txt")
	e.must(err, "stat")
	equal(e, i.Path, "/workspace/dir/sub/file.txt", "the path")
	equal(e, i.Size, 7, "the size")
	equal(e, i.Mode, 0o644, "the mode")
	if i.Modified.Before(begun) {
		e.Errorf("the file was modified at %s", i.Modified)
	}
	i, err = s.Files().Stat(e.ctx(), "dir")
	e.must(err, "stat")
	if !i.Mode.IsDir() {
		e.Errorf("the mode of a directory is %s", i.Mode)
	}
	i, err = s.Files().Stat(e.ctx(), ".")
	e.must(err, "stat")
	equal(e, i.Path, cove.WorkspacePath, "the path of the workspace")
}

func sameFiles(e *env) {
	s := e.sandbox()
	e.write(s, "/tmp/from-api", "api")
	e.prints(s, "api", "cat /tmp/from-api")
	e.prints(s, "", `echo program > "$HOME/made"; mkdir -p deep/er; echo x > deep/er/f`)
	equal(e, e.read(s, "deep/er/f"), "x\n", "a program's file")
	home := e.sh(s, `printf %s "$HOME"`).stdout
	equal(e, e.read(s, home+"/made"), "program\n", "a program's file in its home")
	e.prints(s, "owned\n", "test -O deep/er/f 2>/dev/null || test -w deep/er/f && echo owned")
	e.write(s, "api/owned", "")
	e.prints(s, "ok\n", "echo more >> api/owned && rm -r api && echo ok")
}

func readRanges(e *env) {
	s := e.sandbox()
	e.write(s, "digits", "0123456789")
	for _, tc := range []struct {
		offset, length int64
		want           string
	}{{0, 0, "0123456789"}, {3, 0, "3456789"}, {3, 4, "3456"}, {8, 100, "89"}, {0, 1, "0"}, {10, 0, ""}, {10, 5, ""}, {1 << 40, 1, ""}} {
		got, err := e.content(s, "digits", tc.offset, tc.length)
		e.must(err, "read a range")
		equal(e, got, tc.want, "the range")
	}
	for _, bad := range [][2]int64{{-1, 0}, {0, -1}} {
		_, err := e.content(s, "digits", bad[0], bad[1])
		e.wants(cove.Invalid, err, "a negative range")
	}
}

func readBig(e *env) {
	s := e.sandbox()
	in := pattern(12 << 20)
	e.must(s.Files().Write(e.ctx(), "big", bytes.NewReader(in), 0o600), "write")
	got, err := e.content(s, "big", 0, 0)
	e.must(err, "read")
	if got != string(in) {
		e.Errorf("12 MiB came back as %d bytes, not the same", len(got))
	}
	got, err = e.content(s, "big", 5<<20, 1<<20)
	e.must(err, "read")
	if got != string(in[5<<20:6<<20]) {
		e.Errorf("a range in the middle is not the same")
	}
	r, err := s.Files().Read(e.ctx(), "big", 0, 0)
	e.must(err, "read")
	e.check(r.Close(), "close a stream that was not read")
}

func readNoFile(e *env) {
	s := e.sandbox()
	e.must(s.Files().Mkdir(e.ctx(), "dir"), "mkdir")
	_, err := e.content(s, "dir", 0, 0)
	e.wants(cove.Invalid, err, "reading a directory")
	_, err = e.content(s, "/dev/zero", 0, 10)
	e.wants(cove.Invalid, err, "reading a device")
}

func attributes(e *env) {
	s := e.sandbox()
	f := s.Files()
	e.write(s, "d/f", "x")
	i, err := f.Stat(e.ctx(), "d/f")
	e.must(err, "stat")
	equal(e, strconv.Itoa(i.UID)+"\n", e.sh(s, "id -u").stdout, "whose the file is")
	equal(e, len(i.Meta), 0, "attributes that nobody gave")
	err = f.Tag(e.ctx(), "d/f", map[string]string{"e2b.author": "Zoë", "empty": ""})
	e.needs("attributes of files", cove.CodeOf(err) != cove.Unsupported)
	e.must(err, "tag")
	e.must(f.Tag(e.ctx(), "d/f", map[string]string{"empty": "no more"}), "tag again")
	want := map[string]string{"e2b.author": "Zoë", "empty": "no more"}
	i, err = f.Stat(e.ctx(), "d/f")
	e.must(err, "stat")
	equal(e, i.Meta["e2b.author"]+i.Meta["empty"], want["e2b.author"]+want["empty"], "the attributes")
	for i, err := range f.List(e.ctx(), "d", 1) {
		e.must(err, "list")
		equal(e, len(i.Meta), len(want), "the attributes in a list")
	}
	for _, n := range []int{4, 28, 29, 508, cove.MaxMetaValue} { // some of which programs cannot store
		value := strings.Repeat("x", n)
		e.must(f.Tag(e.ctx(), "d/f", map[string]string{"empty": value}), "tag with a longer value")
		i, err = f.Stat(e.ctx(), "d/f")
		e.must(err, "stat")
		equal(e, i.Meta["empty"], value, "the longer value")
	}
	e.must(f.Tag(e.ctx(), "d", map[string]string{"k": "v"}), "tag a directory")
	e.write(s, "d/f", "y")
	i, err = f.Stat(e.ctx(), "d/f")
	e.must(err, "stat")
	equal(e, len(i.Meta), 0, "the attributes of a file that was replaced")
	e.wants(cove.NotFound, f.Tag(e.ctx(), "none", want), "tagging what is not there")
	for _, bad := range []map[string]string{nil, {"a b": ""}, {"k": "\xff"}, {"k": strings.Repeat("x", cove.MaxMetaValue+1)}} {
		e.wants(cove.Invalid, f.Tag(e.ctx(), "d/f", bad), "attributes that cannot be")
	}
}

func statLink(e *env) {
	s := e.sandbox()
	e.write(s, "target", "x")
	e.prints(s, "", "ln -s target link; ln -s /workspace/target far; ln -s nowhere dangling; ln -s loop loop")
	for name, to := range map[string]string{"link": "target", "far": "/workspace/target", "dangling": "nowhere", "loop": "loop"} {
		i, err := s.Files().Stat(e.ctx(), name)
		e.must(err, "stat "+name)
		equal(e, i.Link, to, "where "+name+" points")
		equal(e, i.Mode.Type(), fs.ModeSymlink, "the type of "+name)
	}
	equal(e, e.read(s, "link"), "x", "what a link leads to")
	equal(e, e.read(s, "far"), "x", "what an absolute link leads to")
	_, err := e.content(s, "dangling", 0, 0)
	e.wants(cove.NotFound, err, "reading through a link to nowhere")
	_, err = e.content(s, "loop", 0, 0)
	e.wants(cove.Invalid, err, "reading through a link to itself")
}

func mkdir(e *env) {
	s := e.sandbox()
	f := s.Files()
	e.must(f.Mkdir(e.ctx(), "a/b/c"), "mkdir")
	e.must(f.Mkdir(e.ctx(), "a/b/c"), "mkdir again")
	e.must(f.Mkdir(e.ctx(), "a/b/d/"), "mkdir with a slash")
	e.prints(s, "c\nd\n", "ls a/b")
	e.write(s, "file", "")
	e.wants(cove.Conflict, f.Mkdir(e.ctx(), "file"), "a directory where a file is")
	e.wants(cove.Invalid, f.Mkdir(e.ctx(), "file/below"), "a directory below a file")
}

func move(e *env) {
	s := e.sandbox()
	f := s.Files()
	e.write(s, "a", "of a")
	e.write(s, "b", "of b")
	e.must(f.Move(e.ctx(), "a", "b"), "move over a file")
	equal(e, e.read(s, "b"), "of a", "the file at its new place")
	_, err := f.Stat(e.ctx(), "a")
	e.wants(cove.NotFound, err, "the old name")
	e.write(s, "dir/x", "deep")
	e.must(f.Move(e.ctx(), "dir", "other"), "move a directory")
	equal(e, e.read(s, "other/x"), "deep", "a file in the directory")
	e.prints(s, "", "ln -s nowhere link")
	e.must(f.Move(e.ctx(), "link", "link2"), "move a link")
	i, err := f.Stat(e.ctx(), "link2")
	e.must(err, "stat")
	equal(e, i.Link, "nowhere", "where the moved link points")
}

func moveBad(e *env) {
	s := e.sandbox()
	f := s.Files()
	e.write(s, "dir/x", "")
	e.write(s, "full/y", "")
	e.wants(cove.NotFound, f.Move(e.ctx(), "missing", "a"), "moving what is not there")
	e.wants(cove.NotFound, f.Move(e.ctx(), "dir/x", "no/such/dir/x"), "moving to a directory that is not there")
	e.wants(cove.Conflict, f.Move(e.ctx(), "dir", "full"), "moving over a full directory")
	e.wants(cove.Invalid, f.Move(e.ctx(), "dir", "dir/inside"), "moving a directory into itself")
	e.prints(s, "dir/x full/y\n", "echo */*")
}

func remove(e *env) {
	s := e.sandbox()
	f := s.Files()
	e.write(s, "file", "")
	e.write(s, "dir/a/b/c", "")
	e.write(s, "kept/file", "")
	e.prints(s, "", "ln -s kept link; ln -s kept dir/link")
	for _, name := range []string{"file", "dir", "link"} {
		e.must(f.Remove(e.ctx(), name), "remove "+name)
		_, err := f.Stat(e.ctx(), name)
		e.wants(cove.NotFound, err, "what was removed")
		e.wants(cove.NotFound, f.Remove(e.ctx(), name), "removing it again")
	}
	e.prints(s, "kept/file\n", "echo */*")
}

func removeWorkspace(e *env) {
	s := e.sandbox()
	e.write(s, "kept", "x")
	for _, name := range []string{".", "/workspace", "/workspace/", "sub/..", "/"} {
		e.must(s.Files().Mkdir(e.ctx(), "sub"), "mkdir")
		e.wants(cove.Invalid, s.Files().Remove(e.ctx(), name), "removing "+name)
	}
	equal(e, e.read(s, "kept"), "x", "a file of the workspace")
}

func missing(e *env) {
	s := e.sandbox()
	f := s.Files()
	_, err := f.Stat(e.ctx(), "missing")
	e.wants(cove.NotFound, err, "Stat")
	_, err = e.content(s, "no/such/file", 0, 0)
	e.wants(cove.NotFound, err, "Read")
	e.wants(cove.NotFound, f.Remove(e.ctx(), "missing"), "Remove")
	_, err = f.Archive(e.ctx(), "missing")
	e.wants(cove.NotFound, err, "Archive")
	for _, err := range f.List(e.ctx(), "missing", 1) {
		e.wants(cove.NotFound, err, "List")
	}
	for _, err := range f.Watch(e.ctx(), "missing") {
		e.wants(cove.NotFound, err, "Watch")
	}
}

func canceledFiles(e *env) {
	s := e.sandbox()
	e.write(s, "a", "x")
	ctx, cancel := context.WithCancel(e.ctx())
	cancel()
	for name, call := range everyFileCall(e, s.Files()) {
		if name == "Watch" {
			continue // ends when its context does, which is no error
		}
		e.wants(cove.Canceled, call(ctx), "Files."+name+" with a context that has ended")
	}
	equal(e, e.read(s, "a"), "x", "the file")
}
