package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/store/sqlite"
)

func open(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// entries are the names in a directory.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// refused wants an error that an operator can act on: which file it is about,
// and words that say what to do.
func refused(err error, path string, words string) error {
	if msg := cove.MessageOf(err); !errors.Is(err, cove.Unavailable) || !strings.Contains(msg, path) || !strings.Contains(msg, words) {
		return fmt.Errorf("got error %w, want Unavailable with %q and %q", err, path, words)
	}
	return nil
}

func TestOpenMakesPrivateFile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "cove.db"))
	if err := s.PutSession(t.Context(), &cove.Session{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	want := []string{"cove.db", "cove.db-shm", "cove.db-wal"}
	if diff := cmp.Diff(want, entries(t, dir)); diff != "" {
		t.Fatalf("files (-want +got):\n%s", diff)
	}
	for _, name := range want {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o", name, info.Mode().Perm())
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[:1], entries(t, dir)); diff != "" {
		t.Fatalf("files after Close (-want +got):\n%s", diff)
	}
}

func TestOpenTightensMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cove.db")
	if err := os.WriteFile(path, nil, 0o644); err != nil { // empty: a database of nothing
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	open(t, path)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o", info.Name(), info.Mode().Perm())
		}
	}
}

func TestOpenPaths(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"a b.db", "q?mode=memory", "h#ash", "per%20cent", ":memory:", "file:x.db", "é\xff", "semi;colon&and=is"} {
		s, err := sqlite.Open(t.Context(), name)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if got := entries(t, dir); len(got) != 8 {
		t.Errorf("files: %q", got)
	}
}

func TestOpenPragmas(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "cove.db"))
	for _, c := range []struct {
		db           *sql.DB
		pragma, want string
	}{
		{s.Writer(), "journal_mode", "wal"},
		{s.Writer(), "synchronous", "1"},
		{s.Writer(), "foreign_keys", "1"},
		{s.Writer(), "busy_timeout", "5000"},
		{s.Writer(), "user_version", strconv.Itoa(latest(t))},
		{s.Reader(), "query_only", "1"},
		{s.Reader(), "busy_timeout", "5000"},
	} {
		var got string
		if err := c.db.QueryRowContext(t.Context(), "PRAGMA "+c.pragma).Scan(&got); err != nil || got != c.want {
			t.Errorf("%s is %q, want %q (%v)", c.pragma, got, c.want, err)
		}
	}
}

// foreign makes a database of another program.
func foreign(t *testing.T, path, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T, path string)
		words   string
	}{
		"text":      {func(t *testing.T, path string) { write(t, path, strings.Repeat("hello\n", 1000)) }, "not a database"},
		"short":     {func(t *testing.T, path string) { write(t, path, "xx") }, "not a database"},
		"directory": {func(t *testing.T, path string) { check(t, os.Mkdir(path, 0o700)) }, "not a file"},
		"other program": {func(t *testing.T, path string) {
			foreign(t, path, "CREATE TABLE moz_places (id INTEGER)")
		}, "another program"},
		"other program with a version": {func(t *testing.T, path string) {
			foreign(t, path, "PRAGMA user_version = 1; CREATE TABLE session (id INTEGER)")
		}, "another program"},
		"newer": {func(t *testing.T, path string) {
			foreign(t, path, "PRAGMA application_id = 1131378277; PRAGMA user_version = 99; CREATE TABLE session (id TEXT)")
		}, fmt.Sprintf("newer version of cove (schema 99, and this one knows %d)", latest(t))},
		"damaged header": {func(t *testing.T, path string) {
			foreign(t, path, "CREATE TABLE x (id TEXT)")
			damage(t, path, 100)
		}, "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "cove.db")
			c.prepare(t, path)
			check(t, os.Chmod(path, 0o755))
			before, _ := os.ReadFile(path)
			_, err := sqlite.Open(t.Context(), path)
			check(t, refused(err, path, c.words))
			after, _ := os.ReadFile(path)
			info, err := os.Stat(path)
			check(t, err)
			if !bytes.Equal(before, after) || info.Mode().Perm() != 0o755 {
				t.Error("the file was changed")
			}
			if diff := cmp.Diff([]string{"cove.db"}, entries(t, dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOpenNowhere(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "no", "cove.db")
	_, err := sqlite.Open(t.Context(), missing)
	check(t, refused(err, missing, "directory "+filepath.Join(dir, "no")+" does not exist"))
	write(t, filepath.Join(dir, "file"), "x")
	below := filepath.Join(dir, "file", "cove.db")
	_, err = sqlite.Open(t.Context(), below)
	check(t, refused(err, below, "cannot be used"))
	dangling := filepath.Join(dir, "link")
	check(t, os.Symlink("/nowhere/at/all", dangling))
	_, err = sqlite.Open(t.Context(), dangling)
	check(t, refused(err, dangling, "does not exist"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sqlite.Open(ctx, filepath.Join(dir, "cove.db")); !errors.Is(err, cove.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if diff := cmp.Diff([]string{"file", "link"}, entries(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// TestOpenTogether starts many stores on a file that is not there yet.
func TestOpenTogether(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "cove.db")
	stores, errs := make([]*sqlite.Store, 16), make([]error, 16)
	var wg sync.WaitGroup
	for i := range stores {
		wg.Go(func() {
			if stores[i], errs[i] = sqlite.Open(t.Context(), path); errs[i] == nil {
				errs[i] = stores[i].PutSession(t.Context(), &cove.Session{ID: cove.NewID()})
			}
		})
	}
	wg.Wait()
	check(t, errors.Join(errs...))
	n := 0
	for _, err := range stores[0].Sessions(t.Context(), cove.SessionFilter{}) {
		check(t, err)
		n++
	}
	if n != len(stores) {
		t.Errorf("%d sessions of %d", n, len(stores))
	}
	for _, s := range stores {
		check(t, s.Close())
	}
	if diff := cmp.Diff([]string{"cove.db"}, entries(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	check(t, os.WriteFile(path, []byte(text), 0o600))
}

// damage overwrites a file from an offset on.
func damage(t *testing.T, path string, from int) {
	t.Helper()
	data, err := os.ReadFile(path)
	check(t, err)
	for i := from; i < len(data); i++ {
		data[i] = 0xa5
	}
	check(t, os.WriteFile(path, data, 0o600))
}

func TestEmpty(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cove.db")
	want := func(what string, want bool) {
		t.Helper()
		if got, err := sqlite.Empty(path); err != nil || got != want {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
	want("no file", true)
	write(t, path, "")
	want("a file of no bytes", true)
	write(t, path, strings.Repeat("hello\n", 1000))
	want("a text", false)
	check(t, os.Remove(path))
	foreign(t, path, "CREATE TABLE x (id TEXT); DROP TABLE x")
	want("a database without tables", true)
	check(t, os.Remove(path))
	open(t, path)
	want("a database of ours", false)
}

// TestSetAside keeps the log of a database that is gone, which would be read into a new
// one otherwise, and leaves that of a database that is there.
func TestSetAside(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "cove.db")
	s := open(t, path)
	check(t, s.PutSession(t.Context(), &cove.Session{ID: "a"}))
	log, err := os.ReadFile(path + "-wal")
	check(t, err)
	check(t, sqlite.SetAside(path))
	check(t, s.PutSession(t.Context(), &cove.Session{ID: "b"}))
	check(t, s.Close())
	check(t, os.Remove(path))
	write(t, path+"-wal", string(log))
	write(t, path+"-shm", "old")
	check(t, sqlite.SetAside(path))
	names := entries(t, dir)
	if len(names) != 1 || !strings.HasPrefix(names[0], "cove.db-wal.") {
		t.Fatalf("files: %q", names)
	}
	if kept, err := os.ReadFile(filepath.Join(dir, names[0])); err != nil || !bytes.Equal(kept, log) {
		t.Errorf("the log was changed: %v", err)
	}
	for rec, err := range open(t, path).Sessions(t.Context(), cove.SessionFilter{}) {
		t.Errorf("a new database has %+v, %v", rec, err)
	}
}
