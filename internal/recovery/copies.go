package recovery

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/recordcopy"
)

// Kind is what a record is of.
type Kind = recordcopy.Kind

// The kinds of records that stand for files.
const (
	Session  = recordcopy.Session
	Snapshot = recordcopy.Snapshot
	Volume   = recordcopy.Volume
)

const newDatabase = "new-database"

// Copies is a cove.Store that keeps a copy of each record that stands for files. It is
// safe for concurrent use; one process at a time may use a folder.
type Copies struct {
	cove.Store

	folder *recordcopy.Folder
}

// Open opens the copies in dir, which is made when it is missing, and the store behind
// them. empty says before the store is opened that it has no record; where it has not,
// the folder remembers that until [Site.Look] has been through.
func Open(ctx context.Context, dir string, empty func() (bool, error), open func(context.Context) (cove.Store, error), logger *slog.Logger) (*Copies, error) {
	folder, err := recordcopy.Open(dir, true, logger) // a copy needs to outlive this process only
	if err != nil {
		return nil, err
	}
	c := &Copies{folder: folder}
	fresh, err := empty()
	if err == nil && fresh {
		err = c.folder.Root.WriteFile(newDatabase, nil, 0o600)
	}
	if err != nil {
		return nil, errors.Join(recordcopy.Unusable(dir, err), folder.Close())
	}
	if c.Store, err = open(ctx); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return c, nil
}

// Close closes the store and the folder.
func (c *Copies) Close() error { return errors.Join(c.Store.Close(), c.folder.Close()) }

// PutSession implements cove.SessionStore.
func (c *Copies) PutSession(ctx context.Context, s *cove.Session) error {
	defer c.folder.Turn(string(s.ID))()
	if err := c.Store.PutSession(ctx, s); err != nil {
		return err
	}
	if s.State == cove.Ended {
		c.folder.Remove(ctx, Session, string(s.ID))
		return nil
	}
	c.folder.Write(ctx, Session, string(s.ID), s)
	return nil
}

// DeleteSession implements cove.SessionStore.
func (c *Copies) DeleteSession(ctx context.Context, id cove.ID) error {
	defer c.folder.Turn(string(id))()
	c.folder.Remove(ctx, Session, string(id))
	return c.Store.DeleteSession(ctx, id)
}

// PutSnapshot implements cove.SnapshotStore.
func (c *Copies) PutSnapshot(ctx context.Context, s *cove.Snapshot) error {
	defer c.folder.Turn(string(s.ID))()
	if err := c.Store.PutSnapshot(ctx, s); err != nil {
		return err
	}
	c.folder.Write(ctx, Snapshot, string(s.ID), s)
	return nil
}

// DeleteSnapshot implements cove.SnapshotStore.
func (c *Copies) DeleteSnapshot(ctx context.Context, id cove.ID) error {
	defer c.folder.Turn(string(id))()
	c.folder.Remove(ctx, Snapshot, string(id))
	return c.Store.DeleteSnapshot(ctx, id)
}

// PutVolume implements cove.VolumeStore.
func (c *Copies) PutVolume(ctx context.Context, v *cove.SavedVolume) error {
	defer c.folder.Turn(string(v.ID))()
	if err := c.Store.PutVolume(ctx, v); err != nil {
		return err
	}
	c.folder.Write(ctx, Volume, string(v.ID), v)
	return nil
}

// DeleteVolume implements cove.VolumeStore.
func (c *Copies) DeleteVolume(ctx context.Context, id cove.ID) error {
	defer c.folder.Turn(string(id))()
	c.folder.Remove(ctx, Volume, string(id))
	return c.Store.DeleteVolume(ctx, id)
}

// names lists the copies by kind, once it has settled what a crash left.
func (c *Copies) names() (map[Kind][]cove.ID, error) {
	if err := c.folder.Settle(); err != nil {
		return nil, err
	}
	names, err := c.folder.Names()
	if err != nil {
		return nil, err
	}
	found := map[Kind][]cove.ID{}
	for kind, ids := range names {
		for _, id := range ids {
			if cove.ID(id).Valid() {
				found[kind] = append(found[kind], cove.ID(id))
			}
		}
	}
	return found, nil
}

// fresh reports whether the database was empty when it was opened, now or earlier, and
// [Site.Look] has not been through since.
func (c *Copies) fresh() (bool, error) {
	_, err := c.folder.Root.Lstat(newDatabase)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// settled forgets that the database was empty.
func (c *Copies) settled() error {
	if err := c.folder.Root.Remove(newDatabase); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
