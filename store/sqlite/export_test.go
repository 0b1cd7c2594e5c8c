package sqlite

import (
	"context"
	"database/sql"
	"io/fs"
)

// OpenWith is Open with other migrations.
func OpenWith(ctx context.Context, path string, files fs.FS) (*Store, error) {
	return open(ctx, path, files)
}

// Migrations are those that are built in.
var Migrations fs.FS = migrations

// Writer is the connection that writes.
func (s *Store) Writer() *sql.DB { return s.writer.db }

// InsertSession is the statement that PutSession runs for a new session.
const InsertSession = insertSession

// Reader is one of the connections that read.
func (s *Store) Reader() *sql.DB { return s.reader.db }

// HoldWriter keeps everybody from writing until release is called.
func (s *Store) HoldWriter() (release func()) {
	s.writer.gate <- struct{}{}
	return s.writer.leave
}
