package engine_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/fake"
)

// bomb is an archive that wants more than there is.
func bomb(write func(*tar.Writer) error) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		out := tar.NewWriter(w)
		err := write(out)
		if err == nil {
			err = out.Close()
		}
		_ = w.CloseWithError(err)
	}()
	return r
}

// sparse is an archive of one block: a file of a tebibyte that is all hole.
func sparse() io.Reader {
	b := make([]byte, 3*512)
	set := func(at int, text string) { copy(b[at:], text) }
	set(0, "sparse")
	set(100, "0000644")
	set(124, "00000000000") // nothing is stored
	set(136, "00000000000")
	set(148, "        ")
	set(156, "S")
	set(257, "ustar  ")
	set(386, "20000000000\x0000000000000") // an empty piece at the end of the hole
	b[483], b[483+6] = 0x80, 1             // the size, in binary: 1 << 40
	sum := 0
	for _, c := range b[:512] {
		sum += int(c)
	}
	set(148, fmt.Sprintf("%06o\x00 ", sum))
	return bytes.NewReader(b)
}

// TestASparseBomb is as TestArchiveBombs, for what no writer of ours makes.
func TestASparseBomb(t *testing.T) {
	p := openEngine(t).As(boss)
	s := mustOpen(t, p, cove.Spec{Workspace: cove.Workspace{Size: cove.MiB, Files: 100}})
	err := p.Files(s.ID).Unpack(t.Context(), ".", sparse())
	if code := cove.CodeOf(err); code != cove.Exhausted && code != cove.Invalid {
		t.Errorf("got %v", err)
	}
	if u, err := p.Sessions().Usage(t.Context(), s.ID); err != nil || u.Disk > cove.MiB {
		t.Errorf("%+v (%v)", u, err)
	}
}

// endlessZeros is as long as anybody wants.
type endlessZeros struct{}

func (endlessZeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestArchiveBombs are stopped by the limits of files and workspaces, and the session goes on.
func TestArchiveBombs(t *testing.T) {
	w := newWorld(t, func(c *fake.Config) { c.Keeper = nil })
	p := w.open().As(boss)
	limits := cove.Workspace{Size: cove.MiB, Files: 100}
	for name, c := range map[string]struct {
		write  func(*tar.Writer) error
		code   cove.Code
		reason string
	}{
		"a huge file": {func(out *tar.Writer) error {
			if err := out.WriteHeader(&tar.Header{Name: "huge", Mode: 0o644, Size: 1 << 50}); err != nil {
				return err
			}
			_, err := io.CopyN(out, endlessZeros{}, 1<<50)
			return err
		}, cove.Invalid, cove.ReasonFileTooLarge},
		"a file that is larger than the workspace": {func(out *tar.Writer) error {
			if err := out.WriteHeader(&tar.Header{Name: "large", Mode: 0o644, Size: 50 << 20}); err != nil {
				return err
			}
			_, err := io.CopyN(out, endlessZeros{}, 50<<20)
			return err
		}, cove.Exhausted, cove.ReasonWorkspaceFull},
		"a million entries": {func(out *tar.Writer) error {
			for i := range 1_000_000 {
				if err := out.WriteHeader(&tar.Header{Name: fmt.Sprint(i), Mode: 0o644}); err != nil {
					return err
				}
			}
			return nil
		}, cove.Exhausted, cove.ReasonWorkspaceFull},
		"deep nesting": {func(out *tar.Writer) error {
			return out.WriteHeader(&tar.Header{Name: strings.Repeat("d/", 2000), Typeflag: tar.TypeDir, Mode: 0o755})
		}, cove.Exhausted, cove.ReasonWorkspaceFull},
		"a declared size without data": {func(out *tar.Writer) error {
			if err := out.WriteHeader(&tar.Header{Name: "short", Mode: 0o644, Size: 50 << 20}); err != nil {
				return err
			}
			return io.ErrUnexpectedEOF
		}, cove.Invalid, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustOpen(t, p, cove.Spec{Workspace: limits})
			r := bomb(c.write)
			wantCode(t, p.Files(s.ID).Unpack(t.Context(), ".", r), c.code, c.reason)
			_ = r.Close()
			u, err := p.Sessions().Usage(t.Context(), s.ID)
			if err != nil || u.Disk > limits.Size || u.Files > limits.Files {
				t.Errorf("%+v (%v)", u, err)
			}
			sh(t, p, s.ID, "rm -rf ./*")
			if got := sh(t, p, s.ID, "echo works > file; cat file"); got != "works\n" {
				t.Errorf("afterwards: %q", got)
			}
			if _, err := p.Sessions().Close(t.Context(), s.ID, false); err != nil {
				t.Error(err)
			}
		})
	}
	if n := held(t, w.provider); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
}
