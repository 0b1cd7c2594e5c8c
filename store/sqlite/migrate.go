package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/cove-sandbox/cove"
)

// The files of migration/ are applied in the order of their numbers, each once
// in the life of a database. A file that was released is never changed.
//
//go:embed migration/*.sql
var migrations embed.FS

// applicationID marks a file as ours: "Cove".
const applicationID = 0x436f7665

// prepare brings a database up to date and into write-ahead mode. A file that
// is not ours or too new is refused before anything is changed in it.
func prepare(ctx context.Context, db *sql.DB, files fs.FS) error {
	steps, err := readSteps(files)
	if err != nil {
		return err
	}
	if _, err := version(ctx, db, len(steps)); err != nil {
		return err
	}
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return fmt.Errorf("write-ahead log: %w", err)
	}
	if mode != "wal" {
		return cove.Errorf(cove.Unavailable, "the file system does not support the locks that SQLite needs; use a local disk")
	}
	return migrate(ctx, db, steps)
}

// migrate runs as one transaction, which always writes: SQLite opens a file that
// it cannot write without a word.
func migrate(ctx context.Context, db *sql.DB, steps []string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // no-op after the commit
	have, err := version(ctx, tx, len(steps))
	if err != nil {
		return err
	}
	for n := have; n < len(steps); n++ {
		if _, err := tx.ExecContext(ctx, steps[n]); err != nil {
			return fmt.Errorf("migration %d: %w", n+1, err)
		}
	}
	mark := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, len(steps))
	if _, err := tx.ExecContext(ctx, mark); err != nil {
		return fmt.Errorf("schema version: %w", err)
	}
	return tx.Commit()
}

// querier is a database or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// version returns how many migrations a database has seen, 0 for an empty one.
func version(ctx context.Context, q querier, known int) (int, error) {
	var have, app, tables int
	const query = `SELECT (SELECT user_version FROM pragma_user_version),
		(SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)`
	if err := q.QueryRowContext(ctx, query).Scan(&have, &app, &tables); err != nil {
		return 0, fmt.Errorf("schema version: %w", err)
	}
	switch {
	case have == 0 && app == 0 && tables == 0:
		return 0, nil
	case app != applicationID:
		return 0, cove.Errorf(cove.Unavailable, "it is a database of another program; choose another path")
	case have > known:
		return 0, cove.Errorf(cove.Unavailable, "it was written by a newer version of cove (schema %d, and this one knows %d); "+
			"run that version, or choose another path to start afresh", have, known)
	}
	return have, nil
}

// readSteps returns the migrations in order. Their names must count from 0001
// without a gap, since the position is the version.
func readSteps(files fs.FS) ([]string, error) {
	names, err := fs.Glob(files, "migration/*.sql")
	if err != nil {
		return nil, err
	}
	steps := make([]string, 0, len(names))
	for i, name := range names {
		if want := fmt.Sprintf("%04d_", i+1); !strings.HasPrefix(path.Base(name), want) {
			return nil, cove.Errorf(cove.Internal, "%s is out of order; its name must start with %s", name, want)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("migration: %w", err)
		}
		steps = append(steps, string(text))
	}
	return steps, nil
}
