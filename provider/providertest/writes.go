package providertest

import (
	"errors"
	"io"
	"testing/iotest"

	"github.com/cove-sandbox/cove"
)

func writeTests() []test {
	return []test{
		{"replaces_the_whole_file", writeReplaces},
		{"keeps_the_mode", writeMode},
		{"reader_that_fails_leaves_the_old_file", writeFailingReader},
		{"error_of_the_reader_comes_back", writeReaderError},
		{"directory_is_invalid", writeDirectory},
		{"place_of_the_system_is_refused", writeSystem},
		{"reader_sees_old_or_new_never_half", writeAtomic},
	}
}

func writeReplaces(e *env) {
	s := e.sandbox()
	e.write(s, "f", "a long first version")
	e.write(s, "f", "short")
	equal(e, e.read(s, "f"), "short", "the file")
	e.write(s, "f", "")
	equal(e, e.read(s, "f"), "", "the empty file")
	e.prints(s, "f\n", "ls -A")
}

func writeMode(e *env) {
	s := e.sandbox()
	f := s.Files()
	for _, mode := range []uint32{0o600, 0o644, 0o755, 0o400} {
		e.must(f.Write(e.ctx(), "f", reader("x"), fileMode(mode)), "write")
		i, err := f.Stat(e.ctx(), "f")
		e.must(err, "stat")
		equal(e, i.Mode, fileMode(mode), "the mode")
	}
	e.must(f.Write(e.ctx(), "plain", reader("x"), 0), "write with mode 0")
	i, err := f.Stat(e.ctx(), "plain")
	e.must(err, "stat")
	equal(e, i.Mode, 0o644, "the mode where none was given")
}

func writeFailingReader(e *env) {
	s := e.sandbox()
	e.write(s, "old", "old content")
	broken := func() io.Reader {
		return io.MultiReader(reader("half of the new"), iotest.ErrReader(errors.New("the caller's reader broke")))
	}
	for _, name := range []string{"old", "new", "new/dir/file"} {
		if err := s.Files().Write(e.ctx(), name, broken(), 0o644); err == nil {
			e.Errorf("writing %s from a reader that fails is no error", name)
		}
	}
	equal(e, e.read(s, "old"), "old content", "the old file")
	_, err := s.Files().Stat(e.ctx(), "new")
	e.wants(cove.NotFound, err, "the new file")
	e.prints(s, "old\n", "ls -A")
}

func writeReaderError(e *env) {
	s := e.sandbox()
	cause := cove.Errorf(cove.Invalid, "too large").Reason(cove.ReasonFileTooLarge)
	err := s.Files().Write(e.ctx(), "f", io.MultiReader(reader("some"), iotest.ErrReader(cause)), 0o644)
	e.wantsReason(cove.Invalid, cove.ReasonFileTooLarge, err, "a reader that fails with an error of ours")
}

func writeDirectory(e *env) {
	s := e.sandbox()
	e.write(s, "dir/kept", "x")
	e.wants(cove.Invalid, s.Files().Write(e.ctx(), "dir", reader("x"), 0o644), "writing to a directory")
	equal(e, e.read(s, "dir/kept"), "x", "a file in the directory")
}

func writeSystem(e *env) {
	s := e.sandbox()
	for _, name := range []string{"/bin/sh", "/usr/bin/env", "/no-such-place"} {
		if err := s.Files().Write(e.ctx(), name, reader("x"), 0o755); err == nil {
			e.Errorf("Files writes %s", name)
		}
	}
	e.prints(s, "still\n", "echo still")
}

func writeAtomic(e *env) {
	s := e.sandbox()
	versions := map[string]bool{}
	for _, c := range "ab" {
		text := make([]byte, 200_000)
		for i := range text {
			text[i] = byte(c)
		}
		versions[string(text)] = true
	}
	for v := range versions {
		e.write(s, "f", v)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 20 {
			for v := range versions {
				e.check(s.Files().Write(e.ctx(), "f", reader(v), 0o644), "write")
			}
		}
	}()
	for range 40 {
		if got := e.read(s, "f"); !versions[got] {
			e.Errorf("a reader saw %d bytes of neither version", len(got))
			break
		}
	}
	<-done
}
