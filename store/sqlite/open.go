package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/cove-sandbox/cove"
)

// Store is a cove.Store in one file. It is safe for concurrent use.
type Store struct {
	path   string
	file   *os.File // the database, for its reserve
	writer *pool    // one connection: SQLite has one writer at a time anyway
	reader *pool

	closing  sync.Once
	closeErr error
}

var _ cove.Store = (*Store)(nil)

const readers = 4

// Open opens the database at path, making it when it is missing and bringing
// an older one up to date. The directory must exist. A new database appears
// whole or not at all. What stands in the way is Unavailable, with a message
// that names the file and says what to do; nothing has been changed then.
func Open(ctx context.Context, path string) (*Store, error) {
	return open(ctx, path, migrations)
}

func open(ctx context.Context, path string, files fs.FS) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault(path, err)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fault(path, err)
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = create(ctx, path, files); err == nil {
			info, err = os.Stat(path)
		}
	}
	if err != nil {
		return nil, fault(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fault(path, cove.Errorf(cove.Unavailable, "it is not a file; choose another path"))
	}
	// Before SQLite opens it: whoever closes a file loses the locks on it.
	file, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // the path is of the settings
	if err != nil {
		return nil, fault(path, err)
	}
	writer, werr := newPool(dsn(path, "synchronous(NORMAL)", "foreign_keys(1)", "wal_autocheckpoint(4000)"), 1)
	reader, rerr := newPool(dsn(path, "query_only(1)"), readers)
	if err := errors.Join(werr, rerr); err != nil {
		return nil, fault(path, errors.Join(err, file.Close()))
	}
	s := &Store{path: path, file: file, writer: writer, reader: reader}
	writer.reserve = &reserve{file}
	err = prepare(ctx, writer.db, files)
	if err == nil {
		writer.fillReserve(ctx)
		err = reserveLog(path)
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = tighten(path)
	}
	if err != nil {
		_ = s.Close() // says the same once more, if anything
		return nil, fault(path, err)
	}
	return s, nil
}

// Empty reports whether there is no database at path, or one in which nothing was ever
// kept: Open makes a new one of it. It changes nothing.
func Empty(path string) (bool, error) {
	data := make([]byte, versionAt+4)
	f, err := os.Open(path) //nolint:gosec // the operator's own path
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fault(path, err)
	}
	n, err := f.ReadAt(data, 0)
	if err := f.Close(); err != nil {
		return false, fault(path, err)
	}
	if n == 0 {
		return true, nil
	}
	if err != nil {
		return false, nil //nolint:nilerr // it is no database; Open says so
	}
	return binary.BigEndian.Uint32(data[versionAt:]) == 0, nil
}

// SetAside keeps the log of a database that is gone, or that was emptied, from being read
// into a new one or removed: it stays beside it under another name. No other process may be
// opening the database.
func SetAside(path string) error {
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return nil
	}
	log := path + "-wal"
	if err := os.Rename(log, log+"."+string(cove.NewID())+".old"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault(path, err)
	}
	if err := os.Remove(path + "-shm"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault(path, err)
	}
	return nil
}

// versionAt is where SQLite's file has the schema version that [prepare] sets.
const versionAt = 60

// tighten keeps others from reading a database and its log. The files are not
// opened for that: closing one would drop the locks that SQLite holds on it.
func tighten(path string) error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Chmod(path+suffix, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Close waits for what is under way and closes the file. Every other method
// fails with Unavailable afterwards. It is idempotent.
func (s *Store) Close() error {
	s.closing.Do(func() {
		// The last connection to be closed folds the log into the file, which
		// only the writer may.
		if err := errors.Join(s.reader.close(), s.writer.close(), s.file.Close()); err != nil {
			s.closeErr = fault(s.path, err)
		}
	})
	return s.closeErr
}

// dsn never lets SQLite make the file, which it would do readable by all.
func dsn(path string, pragmas ...string) string {
	q := url.Values{
		"mode":      {"rw"},
		"_txlock":   {"immediate"},
		"_error_rc": {"1"},
		"_pragma":   append([]string{"busy_timeout(5000)"}, pragmas...),
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String()
}
