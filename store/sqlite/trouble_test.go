package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/store/sqlite"
)

// TestFull lets SQLite believe that the disk is full, which needs no small disk.
func TestFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cove.db")
	s := open(t, path)
	check(t, s.PutSession(t.Context(), &cove.Session{ID: "a"}))
	_, err := s.Writer().ExecContext(t.Context(), "PRAGMA max_page_count = 1")
	check(t, err)
	big := &cove.Session{ID: "b", Spec: cove.Spec{Env: map[string]string{"BIG": strings.Repeat("x", 1<<20)}}}
	check(t, refused(s.PutSession(t.Context(), big), path, "disk is full; free some space"))
	if big.Version != 0 {
		t.Errorf("version %d", big.Version)
	}
	if _, err := s.GetSession(t.Context(), "b"); !errors.Is(err, cove.NotFound) {
		t.Errorf("half a record: %v", err)
	}
	_, err = s.Writer().ExecContext(t.Context(), "PRAGMA max_page_count = 1000000")
	check(t, err)
	check(t, s.PutSession(t.Context(), big))
}

// TestReadOnly takes from the writer what it needs: every method that writes
// says so, and those that read go on.
func TestReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cove.db")
	s := open(t, path)
	rec := &cove.Session{ID: "a"}
	check(t, s.PutSession(t.Context(), rec))
	_, err := s.Writer().ExecContext(t.Context(), "PRAGMA query_only = 1")
	check(t, err)
	for name, call := range map[string]func() error{
		"PutSession":    func() error { return s.PutSession(t.Context(), rec) },
		"DeleteSession": func() error { return s.DeleteSession(t.Context(), "a") },
		"PutKey":        func() error { return s.PutKey(t.Context(), &cove.Key{ID: "k", Hash: []byte("h")}) },
		"PutTenant":     func() error { return s.PutTenant(t.Context(), &cove.Tenant{Name: "acme"}) },
		"AddUsage":      func() error { _, err := s.AddUsage(t.Context(), "acme", cove.Consumption{Up: 1}); return err },
		"TakeClaim":     func() error { _, err := s.TakeClaim(t.Context(), cove.Claim{}, time.Now()); return err },
		"SetClaim":      func() error { return s.SetClaim(t.Context(), "acme", "k", "x") },
	} {
		if err := refused(call(), path, "read-only"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	got, err := s.GetSession(t.Context(), "a")
	check(t, err)
	if got.Version != rec.Version {
		t.Errorf("version %d, want %d", got.Version, rec.Version)
	}
}

// TestDamaged reads from a file whose middle is gone.
func TestDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cove.db")
	s := open(t, path)
	for range 200 {
		check(t, s.PutSession(t.Context(), &cove.Session{ID: cove.NewID()}))
	}
	check(t, s.Close())
	damage(t, path, 4096) // all but the first page, which holds the schema
	s = open(t, path)
	_, err := s.GetSession(t.Context(), "a")
	check(t, refused(err, path, "damaged; restore it from a backup"))
	for _, err := range s.Sessions(t.Context(), cove.SessionFilter{}) {
		check(t, refused(err, path, "damaged; restore it from a backup"))
	}
	check(t, refused(s.PutSession(t.Context(), &cove.Session{ID: "a"}), path, "damaged"))
}

// TestUnknownField meets a record with more in it than this version knows.
func TestUnknownField(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cove.db")
	s := open(t, path)
	check(t, s.PutSession(t.Context(), &cove.Session{ID: "a"}))
	_, err := s.Writer().ExecContext(t.Context(), `UPDATE session SET data = json_set(data, '$.shape', 'round')`)
	check(t, err)
	_, err = s.GetSession(t.Context(), "a")
	check(t, refused(err, path, "run the version that wrote it"))
	n := 0
	for _, err := range s.Sessions(t.Context(), cove.SessionFilter{}) {
		check(t, refused(err, path, "run the version that wrote it"))
		n++
	}
	if n != 1 {
		t.Errorf("%d errors", n)
	}
}

// TestMissingTable stands for any bug of ours: the caller sees no SQL.
func TestMissingTable(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "cove.db"))
	_, err := s.Writer().ExecContext(t.Context(), `DROP TABLE session; DROP TABLE claim; DROP TABLE access_key`)
	check(t, err)
	for name, err := range map[string]error{
		"get":   func() error { _, err := s.GetSession(t.Context(), "a"); return err }(),
		"put":   s.PutSession(t.Context(), &cove.Session{ID: "a"}),
		"key":   s.PutKey(t.Context(), &cove.Key{ID: "a", Hash: []byte("h")}),
		"claim": func() error { _, err := s.TakeClaim(t.Context(), cove.Claim{}, time.Now()); return err }(),
		"listed": func() error {
			for _, err := range s.Sessions(t.Context(), cove.SessionFilter{}) {
				return err
			}
			return nil
		}(),
	} {
		if !errors.Is(err, cove.Internal) || strings.Contains(cove.MessageOf(err), "table") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// locked holds the write lock of a file from outside.
func locked(t *testing.T, path string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate")
	check(t, err)
	tx, err := db.BeginTx(t.Context(), nil)
	check(t, err)
	return func() {
		check(t, tx.Rollback())
		check(t, db.Close())
	}
}

func TestLockedByAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cove.db")
	s := open(t, path)
	_, err := s.Writer().ExecContext(t.Context(), "PRAGMA busy_timeout = 1")
	check(t, err)
	unlock := locked(t, path)
	check(t, refused(s.PutSession(t.Context(), &cove.Session{ID: "a"}), path, "another process keeps the database locked"))
	_, err = s.TakeClaim(t.Context(), cove.Claim{}, time.Now())
	check(t, refused(err, path, "another process keeps the database locked"))
	if _, err := s.GetSession(t.Context(), "a"); !errors.Is(err, cove.NotFound) { // readers do not care
		t.Errorf("read: %v", err)
	}
	unlock()
	check(t, s.PutSession(t.Context(), &cove.Session{ID: "a"}))
}

// TestGiveUpWaiting has writers that wait for their turn go away.
func TestGiveUpWaiting(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "cove.db"))
	release := s.HoldWriter()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	for name, err := range map[string]error{
		"exec": s.PutSession(ctx, &cove.Session{ID: "a"}),
		"row":  func() error { _, err := s.AddUsage(ctx, "acme", cove.Consumption{Up: 1}); return err }(),
		"tx":   func() error { _, err := s.TakeClaim(ctx, cove.Claim{}, time.Now()); return err }(),
	} {
		if !errors.Is(err, cove.Timeout) {
			t.Errorf("%s: %v", name, err)
		}
	}
	release()
	check(t, s.PutSession(t.Context(), &cove.Session{ID: "a"}))
}

// TestManySessions reads more sessions than anybody wants in memory. While the
// caller holds one, no transaction is open: the log can be emptied.
func TestManySessions(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "cove.db"))
	const n = 10_000
	check(t, s.PutSession(t.Context(), &cove.Session{ID: "s", Tenant: "acme"}))
	_, err := s.Writer().ExecContext(t.Context(), `WITH RECURSIVE n (i) AS (VALUES (2) UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO session SELECT 's' || printf('%05d', i), version, tenant, project, user, thread, state, past,
			json_set(data, '$.id', 's' || printf('%05d', i)) FROM session, n`, n)
	check(t, err)
	seen, last := 0, cove.ID("")
	for rec, err := range s.Sessions(t.Context(), cove.SessionFilter{Tenant: "acme"}) {
		check(t, err)
		if rec.ID <= last {
			t.Fatalf("%s came after %s", rec.ID, last)
		}
		last = rec.ID
		if seen++; seen%1000 == 0 {
			check(t, s.PutTenant(t.Context(), &cove.Tenant{Name: "acme"}))
			var busy, pages, done int
			check(t, s.Writer().QueryRowContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &done))
			if busy != 0 {
				t.Fatal("somebody keeps the log")
			}
		}
	}
	if seen != n {
		t.Errorf("saw %d of %d", seen, n)
	}
}

// TestLookUp keeps the way by which Open finds a session: by its key, and past
// the sessions that have ended.
func TestLookUp(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "cove.db"))
	for query, index := range map[string]string{
		"session INDEXED BY session_key WHERE id > '' AND state <> 'ended' AND tenant = ? AND thread = ? AND thread <> '' AND user = ?": "session_key (tenant=? AND thread=? AND user=?)",
		"session WHERE id > ? AND state <> 'ended' AND tenant = ?":                                                                      "session_tenant (tenant=? AND id>?)",
		"session WHERE id > ? AND state <> 'ended'":                                                                                     "session_open (id>?)",
		"session WHERE id > ? AND state = 'ended'":                                                                                      "session_ended (id>?)",
		"snapshot WHERE id > '' AND tenant = ?":                                                                                         "snapshot_tenant (tenant=? AND id>?)",
		"volume WHERE id > '' AND tenant = ?":                                                                                           "volume_tenant (tenant=? AND id>?)",
		"run WHERE id > '' AND state = ?":                                                                                               "run_state (state=? AND id>?)",
	} {
		var a, b, c int
		var plan string
		row := s.Writer().QueryRowContext(t.Context(), "EXPLAIN QUERY PLAN SELECT id, data FROM "+query+" ORDER BY id LIMIT 64", "x", "y", "z")
		check(t, row.Scan(&a, &b, &c, &plan))
		if !strings.HasSuffix(plan, index) {
			t.Errorf("%s\n\tis done by %s\n\twant %s", query, plan, index)
		}
	}
}

var _ cove.Store = (*sqlite.Store)(nil)
