package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cove-sandbox/cove"
)

// create makes a new database under another name and gives it its own when it
// is complete, so that nobody ever sees one that is half made: not after a
// crash, not on a full disk, not in a process that starts at the same moment.
func create(ctx context.Context, path string, files fs.FS) (err error) {
	draft := path + "." + string(cove.NewID()) + ".new"
	f, err := os.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // the operator's own path
	if err != nil {
		return err
	}
	defer func() {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
			if e := os.Remove(draft + suffix); !errors.Is(e, fs.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
	}()
	if err := f.Close(); err != nil {
		return err
	}
	p, err := newPool(dsn(draft), 1)
	if err != nil {
		return err
	}
	if err := errors.Join(prepare(ctx, p.db, files), p.close()); err != nil {
		return err
	}
	if err := os.Link(draft, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the operator's own path
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
