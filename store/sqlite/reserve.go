package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"syscall"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// What is set aside on the disk behind the end of the database and in its log, so that
// records can be changed when the disk is full: a session that ends, ends.
const (
	databaseReserve = 256 << 10
	logReserve      = 1 << 20
)

// reserve is the database file, held open to set room aside behind its end. It must not be
// closed before SQLite has closed the file, which would lose its locks.
type reserve struct{ file *os.File }

// pageSize is SQLite's default.
const pageSize = 4096

// fill sets aside what is missing for a database of so many pages, some of which may be
// in the log yet. That it cannot is no error: a full disk is told by what needs room.
func (r *reserve) fill(pages int64) {
	info, err := r.file.Stat()
	if err != nil {
		return
	}
	need := pages*pageSize + databaseReserve
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok && st.Blocks*512 < need { // a checkpoint cuts off what is behind the end
		_ = preallocate(r.file, 0, need)
	}
}

// fillReserve is called by the goroutine that may use the pool's connection.
func (p *pool) fillReserve(ctx context.Context) {
	st, err := p.stmt(ctx, "PRAGMA page_count") //nolint:sqlclosecheck // it is the pool's
	var pages int64
	if err == nil && st.QueryRowContext(ctx).Scan(&pages) == nil {
		p.reserve.fill(pages)
	}
}

// reserveLog sets room aside in the log of a database that is open.
func reserveLog(path string) error {
	f, err := os.OpenFile(path+"-wal", os.O_WRONLY, 0) //nolint:gosec // the path is of the settings
	if err != nil {
		return err
	}
	_ = preallocate(f, 0, logReserve) // as in fill
	return f.Close()
}

// onFull repeats what found the disk full, once, after the log was written into the
// database: the log begins anew then and needs no more room than it has.
func (p *pool) onFull(ctx context.Context, do func() error) error {
	err := do()
	if p.reserve == nil {
		return err
	}
	if isFull(err) && p.beginLogAnew(ctx) == nil {
		err = do()
	}
	p.fillReserve(ctx)
	return err
}

func (p *pool) beginLogAnew(ctx context.Context) error {
	var busy, inLog, moved sql.NullInt64
	err := p.db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(RESTART)").Scan(&busy, &inLog, &moved)
	if err == nil && busy.Int64 != 0 {
		return errBusy
	}
	return err
}

var errBusy = errors.New("the log of the database is being read")

func isFull(err error) bool {
	e, ok := errors.AsType[*driver.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_FULL
}
