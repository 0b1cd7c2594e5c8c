package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/cove-sandbox/cove"
)

// fault turns what went wrong with a database into an error that says which
// file it is and what to do about it.
func fault(path string, err error) error {
	switch e, ours := errors.AsType[*cove.Error](err); {
	case ours:
		return cove.Wrap(e.Code, err, "%s: %s", path, e.Message)
	case errors.Is(err, errClosed):
		return cove.Wrap(cove.Unavailable, err, "%s: the store is closed", path)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return cove.Wrap(cove.CodeOf(err), err, "%s", cove.MessageOf(err))
	}
	if e, ok := errors.AsType[*driver.Error](err); ok {
		if words, known := meaning(e.Code()); known {
			return cove.Wrap(cove.Unavailable, err, "%s: %s", path, words)
		}
		return cove.Wrap(cove.Internal, err, "%s: SQLite refused a statement; the log has the cause", path)
	}
	return fileFault(path, err)
}

// meaning explains the result codes that have their cause outside of us. The
// low byte of a code is its kind.
func meaning(code int) (words string, known bool) {
	switch code & 0xff {
	case sqlite3.SQLITE_FULL:
		return "the disk is full; free some space and try again", true
	case sqlite3.SQLITE_READONLY:
		return "the file or its directory is read-only; make both writable for the user that runs cove", true
	case sqlite3.SQLITE_NOTADB:
		return "it is not a database; restore it from a backup, or choose another path. " + withoutIt, true
	case sqlite3.SQLITE_CORRUPT:
		return "the database is damaged; restore it from a backup. " + withoutIt, true
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return "the file cannot be opened; make it and its directory readable and writable for the user that runs cove", true
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		return "another process keeps the database locked; end it or try again", true
	case sqlite3.SQLITE_IOERR:
		return "the disk gave an error; check that it is healthy and has space", true
	case sqlite3.SQLITE_NOMEM:
		return "there is no memory left; free some and try again", true
	}
	return "", false
}

// withoutIt is how a server goes on whose database cannot be used.
const withoutIt = "Where there is none, keep the file under another name, start the server and run cove recover, which makes records again of the sessions that it finds"

// fileFault explains what the operating system said.
func fileFault(path string, err error) error {
	words := "the file cannot be used; the log has the cause"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		words = "the directory " + filepath.Dir(path) + " does not exist; make it first"
	case errors.Is(err, fs.ErrPermission):
		words = "it or its directory belongs to somebody else; make both readable and writable for the user that runs cove"
	case errors.Is(err, syscall.EROFS):
		words, _ = meaning(sqlite3.SQLITE_READONLY)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		words, _ = meaning(sqlite3.SQLITE_FULL)
	}
	return cove.Wrap(cove.Unavailable, err, "%s: %s", path, words)
}

// isKeyTaken reports the violation of a unique index other than a primary key.
func isKeyTaken(err error) bool {
	e, ok := errors.AsType[*driver.Error](err)
	return ok && e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE
}
