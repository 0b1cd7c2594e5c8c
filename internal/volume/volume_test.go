package volume_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/volume"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// folder is a folder of a volume, and what keeps it.
func folder(t *testing.T) (d *volume.Dir, id cove.ID, path string) {
	t.Helper()
	d, err := volume.Open(filepath.Join(t.TempDir(), "volumes"))
	check(t, err)
	t.Cleanup(func() { check(t, d.Close()) })
	id = cove.NewID()
	check(t, d.Make(t.Context(), id))
	path, err = d.Path(t.Context(), id)
	check(t, err)
	return d, id, path
}

var plenty = cove.Filling{Bytes: cove.GiB, Files: 1 << 20}

func TestMake(t *testing.T) {
	d, id, path := folder(t)
	check(t, d.Make(t.Context(), id)) // it is there already
	info, err := os.Stat(path)
	check(t, err)
	if info.Mode().Perm() != 0o777 {
		t.Errorf("the folder has the mode %v", info.Mode())
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 && (st.Uid != 1000 || st.Gid != 1000) {
		t.Errorf("the folder belongs to %d:%d", st.Uid, st.Gid)
	}
	above, err := os.Stat(filepath.Dir(path))
	check(t, err)
	if above.Mode().Perm() != 0o700 {
		t.Errorf("the directory above has the mode %v", above.Mode())
	}
	_, err = d.Path(t.Context(), cove.NewID())
	if !errors.Is(err, cove.NotFound) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestOpenThroughALink(t *testing.T) {
	dir := t.TempDir()
	check(t, os.Mkdir(filepath.Join(dir, "home"), 0o700))
	check(t, os.Symlink("home", filepath.Join(dir, "link")))
	d, err := volume.Open(filepath.Join(dir, "link", "volumes"))
	check(t, err)
	defer func() { check(t, d.Close()) }()
	id := cove.NewID()
	check(t, d.Make(t.Context(), id))
	path, err := d.Path(t.Context(), id)
	check(t, err)
	real, err := filepath.EvalSymlinks(path)
	check(t, err)
	if path != real {
		t.Errorf("the path is %s, which leads through a link to %s", path, real)
	}
}

func TestOpenWhereNothingCanBe(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	for _, path := range []string{filepath.Join(dir, "none", "volumes"), filepath.Join(dir, "file")} {
		if _, err := volume.Open(path); !errors.Is(err, cove.Unavailable) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestBadIDs(t *testing.T) {
	d, _, _ := folder(t)
	for _, id := range []cove.ID{"", ".", "..", "../x", "a/b", "x"} {
		_, perr := d.Path(t.Context(), id)
		_, merr := d.Measure(t.Context(), id, plenty)
		for _, err := range []error{d.Make(t.Context(), id), d.Remove(t.Context(), id), perr, merr} {
			if !errors.Is(err, cove.Invalid) {
				t.Errorf("%q: %v", id, err)
			}
		}
	}
}

func TestMeasure(t *testing.T) {
	d, id, path := folder(t)
	look := func(enough cove.Filling) cove.Filling {
		t.Helper()
		f, err := d.Measure(t.Context(), id, enough)
		check(t, err)
		return f
	}
	if f := look(plenty); f != (cove.Filling{}) {
		t.Errorf("an empty folder holds %+v", f)
	}
	check(t, os.MkdirAll(filepath.Join(path, "a", "b"), 0o755))
	check(t, os.WriteFile(filepath.Join(path, "a", "b", "f"), make([]byte, 1<<20), 0o600))
	check(t, os.Link(filepath.Join(path, "a", "b", "f"), filepath.Join(path, "same")))
	check(t, os.Symlink("/", filepath.Join(path, "root")))
	check(t, os.Symlink("..", filepath.Join(path, "a", "up")))
	check(t, syscall.Mkfifo(filepath.Join(path, "pipe"), 0o600))
	if f := look(plenty); f.Files != 6 || f.Bytes < cove.MiB || f.Bytes > 2*cove.MiB || f.Unseen {
		t.Errorf("the folder holds %+v, want 6 files and 1 MiB", f)
	}
	for i := range 50 {
		check(t, os.WriteFile(filepath.Join(path, fmt.Sprint(i)), nil, 0o600))
	}
	if f := look(cove.Filling{Bytes: cove.GiB, Files: 10}); f.Files != 11 {
		t.Errorf("a look goes on to %d files where 10 are enough", f.Files)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Measure(ctx, id, plenty); !errors.Is(err, cove.Canceled) {
		t.Errorf("a look that nobody wants: %v", err)
	}
	if _, err := d.Measure(t.Context(), cove.NewID(), plenty); !errors.Is(err, cove.NotFound) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// nest makes folders in one another, more than a path has room for.
func nest(t *testing.T, path string, depth int) {
	t.Helper()
	name := strings.Repeat("d", 200)
	at, err := os.OpenRoot(path)
	check(t, err)
	for range depth {
		check(t, at.Mkdir(name, 0o700))
		next, err := at.OpenRoot(name)
		check(t, err)
		check(t, next.WriteFile("f", []byte("x"), 0o600))
		check(t, at.Close())
		at = next
	}
	check(t, at.Close())
}

func TestDeepFolders(t *testing.T) {
	d, id, path := folder(t)
	nest(t, path, 200)
	f, err := d.Measure(t.Context(), id, plenty)
	check(t, err)
	if !f.Unseen {
		t.Errorf("folders that nobody looks into are told as %+v", f)
	}
	check(t, d.Remove(t.Context(), id))
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestRemove(t *testing.T) {
	d, id, path := folder(t)
	outside := filepath.Join(t.TempDir(), "kept")
	check(t, os.MkdirAll(outside, 0o755))
	check(t, os.WriteFile(filepath.Join(outside, "f"), nil, 0o600))
	check(t, os.Symlink(outside, filepath.Join(path, "link")))
	for _, name := range []string{"-rf", "new\nline", "\xff\xfe", strings.Repeat("n", 255)} {
		check(t, os.MkdirAll(filepath.Join(path, name, "sub"), 0o755))
		check(t, os.WriteFile(filepath.Join(path, name, "sub", name), nil, 0o600))
		check(t, os.Symlink(outside, filepath.Join(path, name, "sub", "link")))
	}
	for i := range 1100 {
		check(t, os.WriteFile(filepath.Join(path, fmt.Sprint(i)), nil, 0o600))
	}
	check(t, os.MkdirAll(filepath.Join(path, "shut", "in", "deep"), 0o755))
	check(t, os.Chmod(filepath.Join(path, "shut", "in"), 0))
	check(t, os.Chmod(filepath.Join(path, "shut"), 0))
	for range 2 {
		check(t, d.Remove(t.Context(), id))
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(outside, "f")); err != nil {
		t.Errorf("what a link led to is gone: %v", err)
	}
}

func TestRemoveCutShort(t *testing.T) {
	d, id, path := folder(t)
	check(t, os.WriteFile(filepath.Join(path, "f"), nil, 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Remove(ctx, id); !errors.Is(err, cove.Canceled) {
		t.Errorf("a removal that nobody wants: %v", err)
	}
	check(t, d.Remove(t.Context(), id))
}

// TestMeasureWhileItChanges: whatever somebody puts into the place of a folder while
// another looks, the look ends, and nothing that went makes a folder too full.
func TestMeasureWhileItChanges(t *testing.T) {
	d, id, path := folder(t)
	check(t, syscall.Mkfifo(filepath.Join(path, "pipe"), 0o600))
	check(t, os.Symlink("/", filepath.Join(path, "root")))
	at := filepath.Join(path, "at")
	stop, swapping := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for stop.Err() == nil {
			for _, put := range []func() error{
				func() error { return os.MkdirAll(filepath.Join(at, "a", "b", "c"), 0o755) },
				func() error { return os.RemoveAll(at) },
				func() error { return os.Link(filepath.Join(path, "pipe"), at) },
				func() error { return os.Remove(at) },
				func() error { return os.Symlink("root", at) },
				func() error { return os.Remove(at) },
			} {
				_ = put()
			}
		}
	}()
	defer func() {
		swapping()
		<-done
	}()
	for range 3000 {
		f, err := d.Measure(t.Context(), id, plenty)
		check(t, err)
		if f.Unseen || f.Files > 7 {
			t.Fatalf("the folder holds %+v", f)
		}
	}
}

// TestManyNames: names of one file are no files, and are not looked at for ever.
func TestManyNames(t *testing.T) {
	d, id, path := folder(t)
	check(t, os.WriteFile(filepath.Join(path, "f"), nil, 0o600))
	for i := range 9000 {
		check(t, os.Link(filepath.Join(path, "f"), filepath.Join(path, fmt.Sprint(i))))
	}
	f, err := d.Measure(t.Context(), id, cove.Filling{Bytes: cove.GiB, Files: 200})
	check(t, err)
	if f.Unseen || f.Files != 1 {
		t.Errorf("the folder holds %+v", f)
	}
	f, err = d.Measure(t.Context(), id, cove.Filling{Bytes: cove.GiB, Files: 10})
	check(t, err)
	if !f.Unseen {
		t.Errorf("nobody stops at %+v", f)
	}
}
