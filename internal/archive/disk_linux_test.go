package archive_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/archive"
)

// refused wants an error that an operator can act on.
func refused(err error, code cove.Code, path, words string) error {
	if msg := cove.MessageOf(err); !errors.Is(err, code) || !strings.Contains(msg, path) || !strings.Contains(msg, words) {
		return fmt.Errorf("got error %w, want %q with %q and %q", err, string(code), path, words)
	}
	return nil
}

func TestFullDisk(t *testing.T) {
	onDisk(t, "size=1m", func(dir string) error {
		d, err := archive.Open(dir)
		if err != nil {
			return err
		}
		defer func() { _ = d.Close() }()
		id := cove.NewID()
		if _, err := d.Put(t.Context(), id, strings.NewReader("old")); err != nil {
			return err
		}
		_, err = d.Put(t.Context(), id, endless{func() error { return nil }})
		if err := refused(err, cove.Exhausted, dir, "disk is full"); err != nil {
			return err
		}
		filler := filepath.Join(dir, "filler")
		if err := os.WriteFile(filler, make([]byte, 2<<20), 0o600); err == nil {
			return errors.New("the disk holds more than it should")
		}
		_, err = d.Put(t.Context(), id, lastBytes{})
		if err := errors.Join(refused(err, cove.Exhausted, dir, "disk is full"), os.Remove(filler)); err != nil {
			return err
		}
		r, err := d.Get(t.Context(), id)
		if err != nil {
			return err
		}
		old, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil || string(old) != "old" {
			return fmt.Errorf("the old archive holds %q: %w", old, err)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
			return fmt.Errorf("left behind: %v (%w)", files, err)
		}
		_, err = d.Put(t.Context(), id, strings.NewReader("new"))
		return err
	})
}

// lastBytes gives its bytes and the end of the stream at once.
type lastBytes struct{}

func (lastBytes) Read(p []byte) (int, error) { return len(p), io.EOF }

func TestReadOnlyDisk(t *testing.T) {
	onDisk(t, "mode=700", func(dir string) error {
		d, err := archive.Open(dir)
		if err != nil {
			return err
		}
		defer func() { _ = d.Close() }()
		id := cove.NewID()
		if _, err := d.Put(t.Context(), id, strings.NewReader("x")); err != nil {
			return err
		}
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
			return err
		}
		_, err = d.Put(t.Context(), id, strings.NewReader("y"))
		if err := refused(err, cove.Unavailable, dir, "read-only"); err != nil {
			return err
		}
		if err := refused(d.Delete(t.Context(), id), cove.Unavailable, dir, "read-only"); err != nil {
			return err
		}
		_, err = archive.Open(filepath.Join(dir, "new"))
		return refused(err, cove.Unavailable, filepath.Join(dir, "new"), "read-only")
	})
}

func TestDenied(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	private := filepath.Join(dir, "private")
	if err := errors.Join(os.Mkdir(private, 0), os.Chmod(dir, 0o555)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(os.Chmod(dir, 0o700), os.Chmod(private, 0o700)); err != nil {
			t.Error(err)
		}
	})
	if err := asNobody(func() error {
		_, err := archive.Open(private)
		_, missing := archive.Open(filepath.Join(dir, "new"))
		return errors.Join(
			refused(err, cove.Unavailable, private, "somebody else"),
			refused(missing, cove.Unavailable, dir, "somebody else"),
		)
	}); err != nil {
		t.Error(err)
	}
}
