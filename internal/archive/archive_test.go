package archive_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/archive"
	"github.com/cove-sandbox/cove/internal/archive/archivetest"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dir string) *archive.Dir {
	t.Helper()
	d, err := archive.Open(dir)
	check(t, err)
	t.Cleanup(func() { check(t, d.Close()) })
	return d
}

func put(t *testing.T, d *archive.Dir, id cove.ID, text string) {
	t.Helper()
	n, err := d.Put(t.Context(), id, strings.NewReader(text))
	check(t, err)
	if int(n) != len(text) {
		t.Fatalf("wrote %d bytes of %d", n, len(text))
	}
}

func content(t *testing.T, d *archive.Dir, id cove.ID) string {
	t.Helper()
	r, err := d.Get(t.Context(), id)
	check(t, err)
	data, err := io.ReadAll(r)
	check(t, errors.Join(err, r.Close()))
	return string(data)
}

func list(t *testing.T, d *archive.Dir) []cove.ID {
	t.Helper()
	ids := []cove.ID{}
	for id, err := range d.List(t.Context()) {
		check(t, err)
		ids = append(ids, id)
	}
	return ids
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	files, err := os.ReadDir(dir)
	check(t, err)
	names := []string{}
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

func TestArchives(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "archives")
	d := open(t, dir)
	a, b, c := cove.NewID(), cove.NewID(), cove.NewID()
	for _, id := range []cove.ID{c, a, b} {
		put(t, d, id, "files of "+string(id))
	}
	put(t, d, b, "")
	put(t, d, c, "new files")
	want := []cove.ID{a, b, c}
	slices.Sort(want)
	if diff := cmp.Diff(want, list(t, d)); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	for id, text := range map[cove.ID]string{a: "files of " + string(a), b: "", c: "new files"} {
		if got := content(t, d, id); got != text {
			t.Errorf("%s holds %q, want %q", id, got, text)
		}
	}
	for range 2 {
		check(t, d.Delete(t.Context(), a))
	}
	if _, err := d.Get(t.Context(), a); !errors.Is(err, cove.NotFound) {
		t.Errorf("deleted: %v", err)
	}
	again := open(t, dir)
	if got := content(t, again, c); got != "new files" || len(list(t, again)) != 2 {
		t.Errorf("after opening again: %q, %d archives", got, len(list(t, again)))
	}
}

func TestSuite(t *testing.T) {
	archivetest.Run(t, func(t *testing.T) cove.Archives {
		t.Helper()
		return open(t, t.TempDir())
	})
}

func TestModes(t *testing.T) {
	for name, prepare := range map[string]func(dir string) error{
		"new":  func(string) error { return nil },
		"open": func(dir string) error { return errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o755)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "archives")
			check(t, prepare(dir))
			id := cove.NewID()
			put(t, open(t, dir), id, "x")
			for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, string(id)+".tar"): 0o600} {
				info, err := os.Stat(path)
				check(t, err)
				if info.Mode().Perm() != want {
					t.Errorf("%s has mode %o", path, info.Mode().Perm())
				}
			}
		})
	}
}

// endless is a stream that never ends by itself.
type endless struct{ each func() error }

func (e endless) Read(p []byte) (int, error) { return len(p), e.each() }

// TestPutWholeOrNot ends streams in the middle: what was there stays, and
// nothing else is there.
func TestPutWholeOrNot(t *testing.T) {
	part := strings.NewReader(strings.Repeat("x", 1<<20))
	for name, c := range map[string]struct {
		r    io.Reader
		want cove.Code
	}{
		"at once":        {iotest.ErrReader(errors.New("gone")), cove.Internal},
		"later":          {io.MultiReader(part, iotest.ErrReader(cove.Errorf(cove.NotFound, "no sandbox"))), cove.NotFound},
		"wrapped EOF":    {iotest.ErrReader(fmt.Errorf("short: %w", io.EOF)), cove.Internal},
		"unexpected EOF": {iotest.ErrReader(io.ErrUnexpectedEOF), cove.Internal},
		"canceled":       {endless{func() error { return context.Canceled }}, cove.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := open(t, dir)
			old, fresh := cove.NewID(), cove.NewID()
			put(t, d, old, "old")
			for _, id := range []cove.ID{old, fresh} {
				n, err := d.Put(t.Context(), id, c.r)
				if !errors.Is(err, c.want) || n != 0 || cove.MessageOf(err) == "" {
					t.Errorf("got %d, %v, want %s", n, err, c.want)
				}
			}
			if got := content(t, d, old); got != "old" {
				t.Errorf("old archive holds %q", got)
			}
			if diff := cmp.Diff([]string{string(old) + ".tar"}, entries(t, dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPutGivesUp ends the context in the middle of a stream that would go on.
func TestPutGivesUp(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := d.Put(ctx, cove.NewID(), endless{func() error {
		cancel()
		return nil
	}})
	if !errors.Is(err, cove.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := entries(t, dir); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
}

func TestPutTogether(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	id := cove.NewID()
	texts := map[string]bool{}
	errs := make([]error, 32)
	var wg sync.WaitGroup
	for i := range errs {
		text := strings.Repeat(fmt.Sprintf("%02d", i), 50_000)
		texts[text] = true
		wg.Go(func() { _, errs[i] = d.Put(t.Context(), id, strings.NewReader(text)) })
	}
	wg.Wait()
	check(t, errors.Join(errs...))
	if !texts[content(t, d, id)] {
		t.Error("the archive is a mixture")
	}
	if diff := cmp.Diff([]string{string(id) + ".tar"}, entries(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestBadIDs(t *testing.T) {
	dir := t.TempDir()
	d := open(t, filepath.Join(dir, "archives"))
	check(t, os.WriteFile(filepath.Join(dir, "secret.tar"), []byte("secret"), 0o600))
	for _, id := range []cove.ID{
		"", ".", "..", "../secret", "/etc/passwd", "a/b", "secret\x00", cove.NewID() + "x", cove.ID(strings.ToUpper(string(cove.NewID()))),
		"../../../../../../../../..", cove.ID(strings.Repeat("a", 10_000)), "\xff\xfe",
	} {
		_, put := d.Put(t.Context(), id, strings.NewReader("x"))
		_, get := d.Get(t.Context(), id)
		for name, err := range map[string]error{"put": put, "get": get, "delete": d.Delete(t.Context(), id)} {
			if !errors.Is(err, cove.Invalid) {
				t.Errorf("%s %.40q: %v", name, string(id), err)
			}
		}
	}
	if got := entries(t, filepath.Join(dir, "archives")); len(got) != 0 {
		t.Errorf("files: %q", got)
	}
}

// TestStrangers puts files into the directory that do not belong there.
func TestStrangers(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	id, gone, evil := cove.NewID(), cove.NewID(), cove.NewID()
	put(t, d, id, "x")
	draft := string(gone) + "." + string(cove.NewID()) + ".draft"
	strangers := []string{"notes.txt", ".hidden", "x.tar", string(gone), string(gone) + ".tar.gz", string(gone) + ".x.draft", "x.draft"}
	for _, name := range append(strangers, draft) {
		check(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	if diff := cmp.Diff([]cove.ID{id}, list(t, d)); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	open(t, dir)
	want := append(strangers, string(id)+".tar")
	slices.Sort(want)
	if diff := cmp.Diff(want, entries(t, dir)); diff != "" {
		t.Errorf("files after opening (-want +got):\n%s", diff)
	}

	check(t, os.Symlink("/etc/passwd", filepath.Join(dir, string(evil)+".tar")))
	if r, err := d.Get(t.Context(), evil); err == nil {
		t.Errorf("a link out of the directory was followed: %v", r.Close())
	}
	put(t, d, evil, "mine") // replaces the link, not what it points to
	if got := content(t, d, evil); got != "mine" {
		t.Errorf("got %q", got)
	}
}

// TestInTheWay has a directory where an archive should be.
func TestInTheWay(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	id := cove.NewID()
	check(t, os.MkdirAll(filepath.Join(dir, string(id)+".tar", "sub"), 0o700))
	if _, err := d.Put(t.Context(), id, strings.NewReader("x")); !errors.Is(err, cove.Unavailable) {
		t.Errorf("put: %v", err)
	}
	if err := d.Delete(t.Context(), id); !errors.Is(err, cove.Unavailable) {
		t.Errorf("delete: %v", err)
	}
	if got := entries(t, dir); len(got) != 1 {
		t.Errorf("left behind: %q", got)
	}
	draft := filepath.Join(dir, string(id)+"."+string(cove.NewID())+".draft")
	check(t, os.MkdirAll(filepath.Join(draft, "sub"), 0o700))
	if _, err := archive.Open(dir); !errors.Is(err, cove.Unavailable) {
		t.Errorf("open with a draft that cannot be removed: %v", err)
	}
}

func TestEnded(t *testing.T) {
	d := open(t, t.TempDir())
	id := cove.NewID()
	put(t, d, id, "x")
	ended, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range d.List(ended) {
		cancel()
	}
	calls := func(ctx context.Context) map[string]error {
		_, put := d.Put(ctx, id, strings.NewReader("y"))
		_, get := d.Get(ctx, id)
		var listed error
		for _, err := range d.List(ctx) {
			listed = err
		}
		return map[string]error{"put": put, "get": get, "delete": d.Delete(ctx, id), "list": listed}
	}
	for name, err := range calls(ended) {
		if !errors.Is(err, cove.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := content(t, d, id); got != "x" {
		t.Errorf("changed to %q", got)
	}
	for range d.List(t.Context()) {
		break
	}
	check(t, d.Close())
	for name, err := range calls(t.Context()) {
		if !errors.Is(err, cove.Unavailable) || !strings.Contains(cove.MessageOf(err), "closed") {
			t.Errorf("closed: %s: %v", name, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	for path, words := range map[string]string{
		filepath.Join(dir, "no", "archives"):   "does not exist",
		filepath.Join(dir, "file"):             "not a directory",
		filepath.Join(dir, "file", "archives"): "not a directory",
	} {
		_, err := archive.Open(path)
		if msg := cove.MessageOf(err); !errors.Is(err, cove.Unavailable) || !strings.Contains(msg, path) || !strings.Contains(msg, words) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if diff := cmp.Diff([]string{"file"}, entries(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
