package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/cove-sandbox/cove"
)

// Kind is what a record is of.
type Kind string

// The kinds of records that stand for files.
const (
	Session  Kind = "session"
	Snapshot Kind = "snapshot"
	Volume   Kind = "volume"
)

const (
	copySuffix  = ".json"
	draftSuffix = ".draft"
	newDatabase = "new-database"
)

// Copies is a cove.Store that keeps a copy of each record that stands for files. It is
// safe for concurrent use; one process at a time may use a folder.
type Copies struct {
	cove.Store

	root   *os.Root
	logger *slog.Logger
	turns  [64]sync.Mutex // so that the copies of one record are written in the order of its versions
}

// Open opens the copies in dir, which is made when it is missing, and the store behind
// them. empty says before the store is opened that it has no record; where it has not,
// the folder remembers that until [Site.Look] has been through.
func Open(ctx context.Context, dir string, empty func() (bool, error), open func(context.Context) (cove.Store, error), logger *slog.Logger) (_ *Copies, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, unusable(dir, err)
	}
	c := &Copies{logger: logger}
	if c.root, err = os.OpenRoot(dir); err != nil {
		return nil, unusable(dir, err)
	}
	fresh, err := empty()
	if err == nil && fresh {
		err = c.root.WriteFile(newDatabase, nil, 0o600)
	}
	if err != nil {
		return nil, errors.Join(unusable(dir, err), c.root.Close())
	}
	if c.Store, err = open(ctx); err != nil {
		return nil, errors.Join(err, c.root.Close())
	}
	return c, nil
}

func unusable(dir string, err error) error {
	if _, ok := errors.AsType[*cove.Error](err); ok {
		return err
	}
	return cove.Wrap(cove.Unavailable, err, "the folder %s, which has copies of records, cannot be used", dir).
		Remedy("make it a folder of the user that runs cove, and see that its disk has room")
}

// Close closes the store and lets go of the folder.
func (c *Copies) Close() error { return errors.Join(c.Store.Close(), c.root.Close()) }

// PutSession implements cove.SessionStore.
func (c *Copies) PutSession(ctx context.Context, s *cove.Session) error {
	defer c.turn(s.ID)()
	if err := c.Store.PutSession(ctx, s); err != nil {
		return err
	}
	if s.State == cove.Ended {
		c.remove(ctx, Session, s.ID)
		return nil
	}
	c.write(ctx, Session, s.ID, s)
	return nil
}

// DeleteSession implements cove.SessionStore.
func (c *Copies) DeleteSession(ctx context.Context, id cove.ID) error {
	defer c.turn(id)()
	c.remove(ctx, Session, id)
	return c.Store.DeleteSession(ctx, id)
}

// PutSnapshot implements cove.SnapshotStore.
func (c *Copies) PutSnapshot(ctx context.Context, s *cove.Snapshot) error {
	defer c.turn(s.ID)()
	if err := c.Store.PutSnapshot(ctx, s); err != nil {
		return err
	}
	c.write(ctx, Snapshot, s.ID, s)
	return nil
}

// DeleteSnapshot implements cove.SnapshotStore.
func (c *Copies) DeleteSnapshot(ctx context.Context, id cove.ID) error {
	defer c.turn(id)()
	c.remove(ctx, Snapshot, id)
	return c.Store.DeleteSnapshot(ctx, id)
}

// PutVolume implements cove.VolumeStore.
func (c *Copies) PutVolume(ctx context.Context, v *cove.SavedVolume) error {
	defer c.turn(v.ID)()
	if err := c.Store.PutVolume(ctx, v); err != nil {
		return err
	}
	c.write(ctx, Volume, v.ID, v)
	return nil
}

// DeleteVolume implements cove.VolumeStore.
func (c *Copies) DeleteVolume(ctx context.Context, id cove.ID) error {
	defer c.turn(id)()
	c.remove(ctx, Volume, id)
	return c.Store.DeleteVolume(ctx, id)
}

// turn waits until nobody else changes the copies of a record.
func (c *Copies) turn(id cove.ID) (done func()) {
	sum := 0
	for _, b := range []byte(id) {
		sum += int(b)
	}
	m := &c.turns[sum%len(c.turns)]
	m.Lock()
	return m.Unlock
}

// write replaces a copy whole. One that cannot be written is logged and the older one
// stays: the store has the record, and its caller can go on.
func (c *Copies) write(ctx context.Context, kind Kind, id cove.ID, rec any) {
	if !id.Valid() {
		return // it is the name of no file
	}
	name := fileOf(kind, id)
	data, err := json.Marshal(rec)
	if err == nil {
		err = c.root.WriteFile(name+draftSuffix, data, 0o600)
	}
	if err == nil {
		err = c.publish(name)
	}
	if err != nil {
		c.logger.ErrorContext(ctx, "the copy of a record cannot be written; if the database is lost, it is not known from there", slog.String("record", name), slog.Any("error", err))
	}
}

// publish gives a draft that is whole its name. The older copy goes first: some file
// systems bring a file to the disk that replaces another, which takes milliseconds, and
// the copy needs to outlive this process only.
func (c *Copies) publish(name string) error {
	if err := c.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return c.root.Rename(name+draftSuffix, name)
}

func (c *Copies) remove(ctx context.Context, kind Kind, id cove.ID) {
	if !id.Valid() {
		return
	}
	if err := c.root.Remove(fileOf(kind, id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.logger.ErrorContext(ctx, "the copy of a record cannot be removed", slog.String("record", fileOf(kind, id)), slog.Any("error", err))
	}
}

func fileOf(kind Kind, id cove.ID) string { return string(kind) + "-" + string(id) + copySuffix }

// names lists the copies by kind, once it has seen to the drafts that a crash left.
func (c *Copies) names() (map[Kind][]cove.ID, error) {
	if err := c.settleDrafts(); err != nil {
		return nil, err
	}
	files, err := c.files()
	if err != nil {
		return nil, err
	}
	found := map[Kind][]cove.ID{}
	for _, file := range files {
		name, ok := strings.CutSuffix(file, copySuffix)
		kind, id, dash := strings.Cut(name, "-")
		if ok && dash && cove.ID(id).Valid() {
			found[Kind(kind)] = append(found[Kind(kind)], cove.ID(id))
		}
	}
	return found, nil
}

// settleDrafts publishes drafts that are whole and whose older copy was removed already,
// and removes the others.
func (c *Copies) settleDrafts() error {
	files, err := c.files()
	if err != nil {
		return err
	}
	for _, file := range files {
		name, draft := strings.CutSuffix(file, draftSuffix)
		if !draft {
			continue
		}
		data, err := c.root.ReadFile(file)
		if err != nil {
			return err
		}
		if slices.Contains(files, name) || !json.Valid(data) {
			err = c.root.Remove(file)
		} else {
			err = c.root.Rename(file, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Copies) files() (names []string, err error) {
	entries, err := fs.ReadDir(c.root.FS(), ".")
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// read reads a copy into rec. It reports whether the copy can be read.
func (c *Copies) read(kind Kind, id cove.ID, rec any) bool {
	data, err := c.root.ReadFile(fileOf(kind, id))
	return err == nil && json.Unmarshal(data, rec) == nil
}

// fresh reports whether the database was empty when it was opened, now or earlier, and
// nobody has looked since.
func (c *Copies) fresh() (bool, error) {
	_, err := c.root.Lstat(newDatabase)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// settled forgets that the database was empty.
func (c *Copies) settled() error {
	if err := c.root.Remove(newDatabase); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
