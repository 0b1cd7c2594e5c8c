package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
)

// TestRecordsChangeOnAFullDisk: with no room left, sessions that are there can end, over
// and over; others cannot be added, and can when there is room again.
func TestRecordsChangeOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("mounting a tmpfs needs root: %v", err)
	}
	t.Cleanup(func() { check(t, syscall.Unmount(dir, 0)) })
	s := open(t, filepath.Join(dir, "cove.db"))
	t.Cleanup(func() { check(t, s.Close()) })
	var sessions []*cove.Session
	for range 100 {
		rec := &cove.Session{ID: cove.NewID(), State: cove.Running, Spec: cove.Spec{Env: map[string]string{"A": strings.Repeat("x", 2000)}}}
		check(t, s.PutSession(t.Context(), rec))
		sessions = append(sessions, rec)
	}
	filler, err := os.Create(filepath.Join(dir, "filler"))
	for size := 64 << 10; err == nil || size > 1; { // to the last page
		if _, err = filler.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	check(t, filler.Close())
	for round := range 20 { // many times what is set aside
		for _, rec := range sessions {
			rec.State, rec.Cause = cove.Ended, cove.ReasonSessionClosed
			if err := s.PutSession(t.Context(), rec); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
	}
	big := func() *cove.Session {
		return &cove.Session{ID: cove.NewID(), Spec: cove.Spec{Env: map[string]string{"BIG": strings.Repeat("x", 1<<20)}}}
	}
	for range 8 {
		if err = s.PutSession(t.Context(), big()); err != nil {
			break
		}
	}
	check(t, refused(err, filepath.Join(dir, "cove.db"), "disk is full; free some space"))
	check(t, s.PutSession(t.Context(), sessions[0]))
	check(t, os.Remove(filler.Name()))
	check(t, s.PutSession(t.Context(), big()))
}
