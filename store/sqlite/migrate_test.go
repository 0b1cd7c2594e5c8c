package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/store/sqlite"
)

// future is what a later version might bring: the migrations of today and more.
func future(t *testing.T, more ...string) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	names, err := fs.Glob(sqlite.Migrations, "migration/*.sql")
	check(t, err)
	for _, name := range names {
		data, err := fs.ReadFile(sqlite.Migrations, name)
		check(t, err)
		files[name] = &fstest.MapFile{Data: data}
	}
	for i, text := range more {
		files[fmt.Sprintf("migration/%04d_more.sql", latest(t)+i+1)] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

// latest is the number of the last migration of today.
func latest(t *testing.T) int {
	t.Helper()
	names, err := fs.Glob(sqlite.Migrations, "migration/*.sql")
	check(t, err)
	return len(names)
}

const (
	second = "ALTER TABLE session ADD COLUMN color TEXT NOT NULL DEFAULT 'blue';"
	third  = "CREATE TABLE extra (id TEXT); UPDATE session SET color = 'red';"
)

func ask(t *testing.T, s *sqlite.Store, query string) (answer string, err error) {
	t.Helper()
	err = s.Writer().QueryRowContext(t.Context(), query).Scan(&answer)
	return answer, err
}

func TestMigrate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cove.db")
	s := open(t, path)
	check(t, s.PutSession(t.Context(), &cove.Session{ID: "a", Cause: "old"}))
	check(t, s.Close())

	s, err := sqlite.OpenWith(t.Context(), path, future(t, second, third))
	check(t, err)
	for query, want := range map[string]string{
		"PRAGMA user_version":                strconv.Itoa(latest(t) + 2),
		"SELECT color FROM session":          "red",
		"SELECT count(*) FROM extra":         "0",
		"SELECT data->>'cause' FROM session": "old",
	} {
		if got, err := ask(t, s, query); err != nil || got != want {
			t.Errorf("%s gives %q, want %q (%v)", query, got, want, err)
		}
	}
	rec, err := s.GetSession(t.Context(), "a")
	check(t, err)
	check(t, s.PutSession(t.Context(), rec))
	check(t, s.Close())

	_, err = sqlite.Open(t.Context(), path)
	check(t, refused(err, path, fmt.Sprintf("written by a newer version of cove (schema %d, and this one knows %d)", latest(t)+2, latest(t))))
}

// TestMigrateUsage keeps the CPU time that was all that was counted once.
func TestMigrateUsage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cove.db")
	const first = "migration/0001_records.sql"
	text, err := fs.ReadFile(sqlite.Migrations, first)
	check(t, err)
	s, err := sqlite.OpenWith(t.Context(), path, fstest.MapFS{first: &fstest.MapFile{Data: text}})
	check(t, err)
	_, err = s.Writer().ExecContext(t.Context(), "INSERT INTO cpu (tenant, used) VALUES ('acme', 5), ('globex', 7)")
	check(t, err)
	check(t, s.PutSession(t.Context(), &cove.Session{ID: "a", Cause: "old"}))
	check(t, s.Close())

	for range 2 {
		s = open(t, path)
		for tenant, want := range map[string]cove.Consumption{"acme": {CPU: 5}, "globex": {CPU: 7}, "initech": {}} {
			if got, err := s.AddUsage(t.Context(), tenant, cove.Consumption{}); err != nil || got != want {
				t.Errorf("%s has used %+v, want %+v (%v)", tenant, got, want, err)
			}
		}
		if rec, err := s.GetSession(t.Context(), "a"); err != nil || rec.Cause != "old" {
			t.Errorf("the session is %+v (%v)", rec, err)
		}
		check(t, s.Close())
	}
	s = open(t, path)
	more := cove.Consumption{CPU: 1, Held: 2, MemoryTime: 0.5, Executions: 1, Up: 3, Down: 4}
	sum, err := s.AddUsage(t.Context(), "acme", more)
	if want := more.Plus(cove.Consumption{CPU: 5}); err != nil || sum != want {
		t.Errorf("the sum is %+v, want %+v (%v)", sum, want, err)
	}
	if _, err := ask(t, s, "SELECT used FROM cpu"); err == nil {
		t.Error("the old table is still there")
	}
}

// TestMigrateFails leaves the database as it was, whatever step fails.
func TestMigrateFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cove.db")
	s := open(t, path)
	check(t, s.PutSession(t.Context(), &cove.Session{ID: "a"}))
	check(t, s.Close())
	for range 2 {
		_, err := sqlite.OpenWith(t.Context(), path, future(t, second, third, "CREATE TABLE more (id TEXT); NONSENSE;"))
		if !errors.Is(err, cove.Internal) || !strings.Contains(err.Error(), fmt.Sprintf("migration %d", latest(t)+3)) {
			t.Fatalf("got %v", err)
		}
	}
	s = open(t, path)
	if _, err := s.GetSession(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if v, err := ask(t, s, "PRAGMA user_version"); err != nil || v != strconv.Itoa(latest(t)) {
		t.Errorf("version %q (%v)", v, err)
	}
	if _, err := ask(t, s, "SELECT id FROM extra"); err == nil || errors.Is(err, sql.ErrNoRows) {
		t.Errorf("half of the migration is there: %v", err)
	}
}

func TestMigrateNewFails(t *testing.T) {
	dir := t.TempDir()
	for words, files := range map[string]fs.FS{
		"refused a statement": future(t, "NONSENSE"),
		fmt.Sprintf("must start with %04d_", latest(t)+1): func() fs.FS {
			files := future(t).(fstest.MapFS)
			files[fmt.Sprintf("migration/%04d_gap.sql", latest(t)+2)] = &fstest.MapFile{Data: []byte(third)}
			return files
		}(),
	} {
		_, err := sqlite.OpenWith(t.Context(), filepath.Join(dir, "cove.db"), files)
		if !errors.Is(err, cove.Internal) || !strings.Contains(cove.MessageOf(err), words) {
			t.Errorf("got %v, want %q", err, words)
		}
	}
	unreadable := fstest.MapFS{"migration/0001_a.sql": &fstest.MapFile{Mode: fs.ModeDir}}
	if _, err := sqlite.OpenWith(t.Context(), filepath.Join(dir, "cove.db"), unreadable); err == nil {
		t.Error("a migration that is a directory was read")
	}
	if got := entries(t, dir); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
}

// TestMigrateTogether upgrades one file from many sides at once.
func TestMigrateTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cove.db")
	check(t, open(t, path).Close())
	files := future(t, second, third)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			s, err := sqlite.OpenWith(t.Context(), path, files)
			if err == nil {
				err = s.Close()
			}
			errs[i] = err
		})
	}
	wg.Wait()
	check(t, errors.Join(errs...))
}
