// Package recordcopy keeps copies of records in the files of one folder, each in a file
// of its own. It must not know what a record means, and must not decide when a copy is
// written or removed: that is for internal/recovery, beside the database of one server,
// and for internal/noderecord, beside the directory of a cluster.
package recordcopy

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

// Kind is what a record is of. It is the first word of the name of a copy.
type Kind string

// The kinds of records that have files: of a workspace, a snapshot or a volume.
const (
	Session  Kind = "session"
	Snapshot Kind = "snapshot"
	Volume   Kind = "volume"
)

const (
	copySuffix  = ".json"
	draftSuffix = ".draft"
)

// Folder is a folder of copies. It is safe for concurrent use; one process at a time may
// use a folder.
type Folder struct {
	Root *os.Root // for the other files of its user

	gaps   bool
	logger *slog.Logger
	turns  [64]sync.Mutex
}

// Open opens a folder, which is made when it is missing. With gaps, a copy is missing for
// a moment while it is replaced: some file systems bring a file to the disk that replaces
// another, which takes milliseconds, and removing the older one first avoids that.
func Open(dir string, gaps bool, logger *slog.Logger) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, Unusable(dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, Unusable(dir, err)
	}
	return &Folder{Root: root, gaps: gaps, logger: logger}, nil
}

// Unusable is the error of a folder that cannot be used.
func Unusable(dir string, err error) error {
	if _, ok := errors.AsType[*cove.Error](err); ok {
		return err
	}
	return cove.Wrap(cove.Unavailable, err, "the folder %s, which has copies of records, cannot be used", dir).
		Remedy("make it a folder of the user that runs cove, and see that its disk has room").Reason(cove.ReasonConfiguration)
}

// Close closes the folder.
func (f *Folder) Close() error { return f.Root.Close() }

// Turn waits until no other caller has the turn of this record, so that its copies are
// written in the order of its versions.
func (f *Folder) Turn(id string) (done func()) {
	sum := 0
	for _, b := range []byte(id) {
		sum += int(b)
	}
	m := &f.turns[sum%len(f.turns)]
	m.Lock()
	return m.Unlock
}

// FileOf is the name of a copy.
func FileOf(kind Kind, id string) string { return string(kind) + "-" + id + copySuffix }

// named reports whether an id can stand in the name of a file.
func named(id string) bool {
	return id != "" && strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// Write replaces a copy whole. One that cannot be written is logged and the older one
// stays: the store has the record, and its caller can go on.
func (f *Folder) Write(ctx context.Context, kind Kind, id string, rec any) {
	if !named(id) {
		return
	}
	data, err := json.Marshal(rec)
	if err == nil {
		err = f.Replace(FileOf(kind, id), data)
	}
	if err != nil {
		f.logger.ErrorContext(ctx, "the copy of a record cannot be written; if the store loses the record, it cannot be restored from here",
			slog.String("record", FileOf(kind, id)), slog.String("folder", f.Root.Name()), slog.Any("error", err))
	}
}

// Replace writes a file whole.
func (f *Folder) Replace(name string, data []byte) error {
	if err := f.Root.WriteFile(name+draftSuffix, data, 0o600); err != nil {
		return err
	}
	if f.gaps {
		if err := f.Root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return f.Root.Rename(name+draftSuffix, name)
}

// Remove removes a copy. One that cannot be removed is logged.
func (f *Folder) Remove(ctx context.Context, kind Kind, id string) {
	if !named(id) {
		return
	}
	if err := f.Root.Remove(FileOf(kind, id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.logger.ErrorContext(ctx, "the copy of a record cannot be removed",
			slog.String("record", FileOf(kind, id)), slog.String("folder", f.Root.Name()), slog.Any("error", err))
	}
}

// Read reads a copy into rec. It reports whether there is one that can be read.
func (f *Folder) Read(kind Kind, id string, rec any) bool {
	data, err := f.Root.ReadFile(FileOf(kind, id))
	return err == nil && json.Unmarshal(data, rec) == nil
}

// Names lists the ids of the copies by kind.
func (f *Folder) Names() (map[Kind][]string, error) {
	files, err := f.files()
	if err != nil {
		return nil, err
	}
	found := map[Kind][]string{}
	for _, file := range files {
		name, ok := strings.CutSuffix(file, copySuffix)
		if kind, id, dash := strings.Cut(name, "-"); ok && dash && named(id) {
			found[Kind(kind)] = append(found[Kind(kind)], id)
		}
	}
	return found, nil
}

// Settle completes what a crash left: it gives drafts of copies their names that are
// whole and whose older copy was removed already, and removes the other drafts. It must
// not run while copies are written.
func (f *Folder) Settle() error {
	files, err := f.files()
	if err != nil {
		return err
	}
	for _, file := range files {
		name, draft := strings.CutSuffix(file, draftSuffix)
		if !draft {
			continue
		}
		data, err := f.Root.ReadFile(file)
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, copySuffix) && !slices.Contains(files, name) && json.Valid(data) {
			err = f.Root.Rename(file, name)
		} else {
			err = f.Root.Remove(file)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *Folder) files() (names []string, err error) {
	entries, err := fs.ReadDir(f.Root.FS(), ".")
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}
