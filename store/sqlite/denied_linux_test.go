package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/store/sqlite"
)

// reachable is a directory that other users can enter but not write to.
func reachable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	check(t, os.Chmod(filepath.Dir(dir), 0o755))
	check(t, os.Chmod(dir, 0o555))
	t.Cleanup(func() { check(t, os.Chmod(dir, 0o700)) })
	return dir
}

// made puts a database with one session into a directory.
func made(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "cove.db")
	s, err := sqlite.Open(t.Context(), path)
	check(t, err)
	check(t, s.PutSession(t.Context(), &cove.Session{ID: "a"}))
	check(t, s.Close())
	return path
}

// tryOpen opens as somebody else and wants to be refused.
func tryOpen(t *testing.T, path, words string) {
	t.Helper()
	before := entries(t, filepath.Dir(path))
	check(t, asNobody(func() error {
		_, err := sqlite.Open(t.Context(), path)
		return refused(err, path, words)
	}))
	if diff := cmp.Diff(before, entries(t, filepath.Dir(path))); diff != "" {
		t.Errorf("files (-before +after):\n%s", diff)
	}
}

func TestOpenDenied(t *testing.T) {
	t.Run("new file in a read-only directory", func(t *testing.T) {
		tryOpen(t, filepath.Join(reachable(t), "cove.db"), "belongs to somebody else")
	})
	t.Run("file of somebody else", func(t *testing.T) {
		dir := reachable(t)
		check(t, os.Chmod(dir, 0o755))
		path := made(t, dir)
		if os.Geteuid() != 0 {
			check(t, os.Chmod(path, 0))
		}
		tryOpen(t, path, "readable and writable for the user that runs cove")
	})
	t.Run("file of somebody else that all may read", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root can make a file of somebody else")
		}
		dir := reachable(t)
		path := made(t, dir)
		check(t, os.Chmod(path, 0o644))
		tryOpen(t, path, "for the user that runs cove")
	})
	t.Run("own file in a read-only directory", func(t *testing.T) {
		dir := reachable(t)
		check(t, os.Chmod(dir, 0o755))
		path := made(t, dir)
		if os.Geteuid() == 0 {
			check(t, os.Chown(path, nobody, nobody))
		}
		check(t, os.Chmod(dir, 0o555))
		tryOpen(t, path, "for the user that runs cove")
	})
	t.Run("read-only file", func(t *testing.T) {
		dir := reachable(t)
		check(t, os.Chmod(dir, 0o777))
		path := made(t, dir)
		if os.Geteuid() == 0 {
			check(t, os.Chown(path, nobody, nobody))
		}
		check(t, os.Chmod(path, 0o400))
		check(t, asNobody(func() error {
			_, err := sqlite.Open(t.Context(), path)
			return refused(err, path, "read-only")
		}))
	})
}

func TestFullDisk(t *testing.T) {
	onDisk(t, "size=1m", func(dir string) error {
		path, filler := filepath.Join(dir, "cove.db"), filepath.Join(dir, "filler")
		if err := os.WriteFile(filler, make([]byte, 2<<20), 0o600); err == nil {
			return errors.New("the disk holds more than it should")
		}
		_, err := sqlite.Open(t.Context(), path)
		if err := refused(err, path, "disk is full"); err != nil {
			return err
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
			return fmt.Errorf("left behind: %v (%w)", list, err)
		}
		if err := os.WriteFile(filler, make([]byte, 256<<10), 0o600); err != nil {
			return err
		}
		s, err := sqlite.Open(t.Context(), path)
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		if err := fillUp(t, s, path); err != nil {
			return err
		}
		if err := os.Remove(filler); err != nil {
			return err
		}
		return errors.Join(s.PutSession(t.Context(), &cove.Session{ID: "after"}), s.Close())
	})
}

// fillUp writes until the disk is full, and wants everything that was accepted
// to be there and nothing else.
func fillUp(t *testing.T, s *sqlite.Store, path string) error {
	big := map[string]string{"BIG": string(make([]byte, 4<<10))}
	var kept []cove.ID
	for {
		rec := &cove.Session{ID: cove.NewID(), Spec: cove.Spec{Env: big}}
		err := s.PutSession(t.Context(), rec)
		if err != nil {
			if err := refused(err, path, "disk is full"); err != nil {
				return err
			}
			break
		}
		kept = append(kept, rec.ID)
	}
	var got []cove.ID
	for rec, err := range s.Sessions(t.Context(), cove.SessionFilter{}) {
		if err != nil {
			return err
		}
		got = append(got, rec.ID)
	}
	slices.Sort(kept) // many were made in the same millisecond
	if diff := cmp.Diff(kept, got); diff != "" || len(kept) == 0 {
		return fmt.Errorf("%d kept (-kept +found):\n%s", len(kept), diff)
	}
	return nil
}

func TestReadOnlyDisk(t *testing.T) {
	onDisk(t, "ro", func(dir string) error {
		path := filepath.Join(dir, "cove.db")
		_, err := sqlite.Open(t.Context(), path)
		return refused(err, path, "read-only")
	})
}
