package platformtest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cove-sandbox/cove"
)

func fileCases() []testCase {
	return []testCase{
		{"write_stat_read", writeStatRead},
		{"read_a_part", readAPart},
		{"programs_see_files", programsSeeFiles},
		{"whole_or_not_at_all", wholeOrNotAtAll},
		{"too_large", fileTooLarge},
		{"too_large_in_an_archive", archivedFileTooLarge},
		{"large", largeFile},
		{"list", listFiles},
		{"mkdir_move_remove", mkdirMoveRemove},
		{"missing", missingFiles},
		{"workspace_full", workspaceFull},
	}
}

func writeStatRead(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	r.must(p.Files(id).Write(r.ctx, "a/b/run.sh", strings.NewReader("echo hi\n"), 0o755), "write")
	for _, name := range []string{"a/b/run.sh", "/workspace/a/b/run.sh", "./a//b/../b/run.sh"} {
		info, err := p.Files(id).Stat(r.ctx, name)
		r.must(err, "stat "+name)
		if info.Path != "/workspace/a/b/run.sh" || info.Size != 8 || info.Mode.IsDir() || info.Mode.Perm()&0o100 == 0 || info.Modified.IsZero() || info.Link != "" {
			t.Errorf("%s: %+v", name, info)
		}
		same(t, name, r.read(p, id, name), "echo hi\n")
	}
	r.write(p, id, "a/b/run.sh", "short")
	same(t, "the replaced file", r.read(p, id, "a/b/run.sh"), "short")
	r.write(p, id, "empty", "")
	same(t, "an empty file", r.read(p, id, "empty"), "")
	odd := "a name with spaces, ünïcode & 'quotes'?.txt"
	r.write(p, id, odd, "odd")
	same(t, "a file with an odd name", r.read(p, id, odd), "odd")
	dir, err := p.Files(id).Stat(r.ctx, "a")
	r.must(err, "stat a directory")
	if !dir.Mode.IsDir() || dir.Path != "/workspace/a" {
		t.Errorf("a directory is told as %+v", dir)
	}
}

func readAPart(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	r.write(p, id, "f", "0123456789")
	for _, c := range []struct {
		offset, length int64
		want           string
	}{{0, 0, "0123456789"}, {3, 4, "3456"}, {7, 0, "789"}, {8, 100, "89"}, {10, 0, ""}, {50, 5, ""}} {
		body, err := p.Files(id).Read(r.ctx, "f", c.offset, c.length)
		r.must(err, "read a part")
		same(t, "the part", r.drain(body), c.want)
	}
	for _, c := range [][2]int64{{-1, 0}, {0, -1}} {
		_, err := p.Files(id).Read(r.ctx, "f", c[0], c[1])
		wantCode(t, err, cove.Invalid)
	}
}

func programsSeeFiles(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	r.write(p, id, "in", "from outside\n")
	same(t, "what a program reads", r.sh(p, id, "cat in; cat /workspace/in"), "from outside\nfrom outside\n")
	r.sh(p, id, "echo from inside > out")
	same(t, "what a program wrote", r.read(p, id, "out"), "from inside\n")
}

// wholeOrNotAtAll: a source that breaks in the middle leaves the old file, or none.
func wholeOrNotAtAll(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	r.write(p, id, "f", "old")
	broken := func() io.Reader {
		return io.MultiReader(strings.NewReader(strings.Repeat("new", 50_000)), iotest.ErrReader(errors.New("the source broke")))
	}
	if err := p.Files(id).Write(r.ctx, "f", broken(), 0o644); err == nil {
		t.Error("writing from a source that broke worked")
	}
	same(t, "the file after a broken write", r.read(p, id, "f"), "old")
	if err := p.Files(id).Write(r.ctx, "g", broken(), 0o644); err == nil {
		t.Error("writing from a source that broke worked")
	}
	_, err := p.Files(id).Stat(r.ctx, "g")
	wantCode(t, err, cove.NotFound)
	ctx, leave := context.WithCancel(r.ctx)
	source := io.MultiReader(strings.NewReader(strings.Repeat("new", 50_000)), readerFunc(func([]byte) (int, error) {
		leave()
		<-ctx.Done()
		return 0, ctx.Err()
	}))
	if err := p.Files(id).Write(ctx, "f", source, 0o644); err == nil {
		t.Error("a write whose caller went away worked")
	}
	same(t, "the file after a write whose caller went away", r.read(p, id, "f"), "old")
	r.eventually("nothing is left of broken writes", func() bool { return len(all(r, p.Files(id).List(r.ctx, ".", 3))) == 1 })
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func fileTooLarge(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxFileSize: 4 * cove.KiB})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	r.write(p, id, "f", strings.Repeat("x", 4<<10))
	err := p.Files(id).Write(r.ctx, "f", strings.NewReader(strings.Repeat("y", 4<<10+1)), 0o644)
	wantReason(t, err, cove.Invalid, cove.ReasonFileTooLarge)
	same(t, "the file after one that was too large", r.read(p, id, "f"), strings.Repeat("x", 4<<10))
	endless := readerFunc(func(b []byte) (int, error) { return len(b), nil })
	wantReason(t, p.Files(id).Write(r.ctx, "g", endless, 0o644), cove.Invalid, cove.ReasonFileTooLarge)
	_, err = p.Files(id).Stat(r.ctx, "g")
	wantCode(t, err, cove.NotFound)
}

// archivedFileTooLarge: each file of an archive has the bound of a file that is
// written.
func archivedFileTooLarge(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxFileSize: 4 * cove.KiB})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	for name, size := range map[string]int{"just": 4 << 10, "over": 4<<10 + 1} {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		for _, entry := range []string{"before-" + name, name, "after-" + name} {
			content := strings.Repeat("x", 10)
			if entry == name {
				content = strings.Repeat("y", size)
			}
			r.must(w.WriteHeader(&tar.Header{Name: entry, Mode: 0o644, Size: int64(len(content))}), "write a header")
			_, err := io.WriteString(w, content)
			r.must(err, "write an entry")
		}
		r.must(w.Close(), "end the archive")
		err := p.Files(id).Unpack(r.ctx, ".", &archive)
		if name == "just" {
			r.must(err, "unpack a file at the limit")
			continue
		}
		wantReason(t, err, cove.Invalid, cove.ReasonFileTooLarge)
		for _, gone := range []string{"over", "after-over"} {
			_, err := p.Files(id).Stat(r.ctx, gone)
			wantCode(t, err, cove.NotFound)
		}
		same(t, "a file before the one that was too large", r.read(p, id, "before-over"), strings.Repeat("x", 10))
	}
}

func largeFile(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	raw := make([]byte, 3<<20+17)
	chance := rand.NewChaCha8([32]byte{1})
	_, _ = chance.Read(raw) // never fails
	r.write(p, id, "large", string(raw))
	if r.read(p, id, "large") != string(raw) {
		t.Error("a file of 3 MiB of chance came back otherwise")
	}
}

func listFiles(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	for _, name := range []string{"b", "a/1", "a/deep/er/x", "c"} {
		r.write(p, id, name, "text")
	}
	for _, c := range []struct {
		dir   string
		depth int
		want  []string
	}{
		{".", 1, []string{"/workspace/a", "/workspace/b", "/workspace/c"}},
		{"/workspace", 2, []string{"/workspace/a", "/workspace/a/1", "/workspace/a/deep", "/workspace/b", "/workspace/c"}},
		{"a", cove.MaxListDepth, []string{"/workspace/a/1", "/workspace/a/deep", "/workspace/a/deep/er", "/workspace/a/deep/er/x"}},
	} {
		var got []string
		for _, info := range all(r, p.Files(id).List(r.ctx, c.dir, c.depth)) {
			got = append(got, info.Path)
		}
		same(t, "the list of "+c.dir, got, c.want)
	}
	r.must(first(p.Files(id).List(r.ctx, ".", 3)), "leave a list early")
	_, err := collect(p.Files(id).List(r.ctx, ".", -1))
	wantCode(t, err, cove.Invalid)
}

func mkdirMoveRemove(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	r.must(p.Files(id).Mkdir(r.ctx, "x/y/z"), "mkdir")
	r.write(p, id, "x/y/z/f", "text")
	r.must(p.Files(id).Move(r.ctx, "x/y", "moved"), "move a directory")
	same(t, "a file of a moved directory", r.read(p, id, "moved/z/f"), "text")
	r.must(p.Files(id).Move(r.ctx, "moved/z/f", "/workspace/g"), "move a file")
	same(t, "a moved file", r.read(p, id, "g"), "text")
	_, err := p.Files(id).Stat(r.ctx, "moved/z/f")
	wantCode(t, err, cove.NotFound)
	r.must(p.Files(id).Remove(r.ctx, "moved"), "remove a directory")
	r.must(p.Files(id).Remove(r.ctx, "g"), "remove a file")
	_, err = p.Files(id).Stat(r.ctx, "moved")
	wantCode(t, err, cove.NotFound)
	wantCode(t, p.Files(id).Remove(r.ctx, "g"), cove.NotFound)
}

func missingFiles(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	files := p.Files(r.session(p, cove.Spec{}).ID)
	_, err := files.Stat(r.ctx, "none")
	wantCode(t, err, cove.NotFound)
	wantCode(t, shut(files.Read(r.ctx, "none", 0, 0)), cove.NotFound)
	wantCode(t, files.Move(r.ctx, "none", "other"), cove.NotFound)
	wantCode(t, files.Remove(r.ctx, "none"), cove.NotFound)
	_, err = collect(files.List(r.ctx, "none", 1))
	wantCode(t, err, cove.NotFound)
	wantCode(t, first(files.Watch(r.ctx, "none")), cove.NotFound)
	body, err := files.Archive(r.ctx, "none")
	if err == nil {
		_, err = io.Copy(io.Discard, body)
	}
	wantCode(t, err, cove.NotFound)
}

func workspaceFull(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	limits := r.capabilities().Isolation
	if limits.Disk == cove.Hard {
		id := r.session(p, cove.Spec{Workspace: cove.Workspace{Kind: cove.WorkspaceMemory, Size: 256 * cove.KiB}}).ID
		err := p.Files(id).Write(r.ctx, "f", strings.NewReader(strings.Repeat("x", 512<<10)), 0o644)
		wantReason(t, err, cove.Exhausted, cove.ReasonWorkspaceFull)
		_, err = p.Files(id).Stat(r.ctx, "f")
		wantCode(t, err, cove.NotFound)
		r.write(p, id, "small", "fits")
	}
	if limits.Files == cove.Hard {
		id := r.session(p, cove.Spec{Workspace: cove.Workspace{Kind: cove.WorkspaceMemory, Files: 10}}).ID
		var err error
		for n := 0; n < 20 && err == nil; n++ {
			err = p.Files(id).Write(r.ctx, string(rune('a'+n)), strings.NewReader("x"), 0o644)
		}
		wantReason(t, err, cove.Exhausted, cove.ReasonWorkspaceFull)
	}
}
