package e2bapi

import (
	"context"
	"net/http"
	"path"

	"github.com/cove-sandbox/cove"
)

// Bounds on what one list answers with.
const (
	maxEntries   = 100_000
	maxListBytes = 32 << 20 // of names
)

// filesystemCalls are envd's calls about files, by method and path.
func filesystemCalls() map[string]action {
	const at = "POST /filesystem.Filesystem/"
	return map[string]action{
		at + "Stat":             func(c *call) error { return unary(c, c.statEntry) },
		at + "MakeDir":          func(c *call) error { return unary(c, c.makeDir) },
		at + "Move":             func(c *call) error { return unary(c, c.moveEntry) },
		at + "Remove":           func(c *call) error { return unary(c, c.removeEntry) },
		at + "ListDir":          func(c *call) error { return unary(c, c.listDir) },
		at + "WatchDir":         func(c *call) error { return stream(c, c.watchDir) },
		at + "CreateWatcher":    func(c *call) error { return unary(c, c.createWatcher) },
		at + "GetWatcherEvents": func(c *call) error { return c.atWatcher(func() error { return unary(c, c.watcherEvents) }) },
		at + "RemoveWatcher":    func(c *call) error { return c.atWatcher(func() error { return unary(c, c.removeWatcher) }) },
	}
}

// pathMessage names one file.
type pathMessage struct {
	Path string `json:"path"`
}

// entryMessage is the answer about one file.
type entryMessage struct {
	Entry entry `json:"entry"`
}

// nothing is an answer without content.
type nothing struct{}

func (c *call) files() cove.Files { return c.platform.Files(c.id) }

func (c *call) statEntry(ctx context.Context, in pathMessage) (entryMessage, error) {
	name, err := inward(in.Path)
	if err != nil {
		return entryMessage{}, err
	}
	return c.described(ctx, name)
}

// described is the answer about a file.
func (c *call) described(ctx context.Context, name string) (entryMessage, error) {
	info, err := c.files().Stat(ctx, name)
	if err != nil {
		return entryMessage{}, err
	}
	return entryMessage{entryOf(ctx, c.files(), info)}, nil
}

// makeDir makes a directory. One that is there already is an error that clients know
// by its word.
func (c *call) makeDir(ctx context.Context, in pathMessage) (entryMessage, error) {
	name, err := inward(in.Path)
	if err != nil {
		return entryMessage{}, err
	}
	switch info, err := find(ctx, c.files(), name); {
	case err == nil && info.Mode.IsDir():
		err := cove.Errorf(cove.Conflict, "directory already exists: %.200s", outward(name))
		c.answer(http.StatusConflict, rpcProblem{"already_exists", textOf(err)})
		return entryMessage{}, err
	case err == nil:
		return entryMessage{}, cove.InvalidField("path", "%.200q exists and is not a directory", outward(name))
	case cove.CodeOf(err) != cove.NotFound:
		return entryMessage{}, err
	}
	if err := c.files().Mkdir(ctx, name); err != nil {
		return entryMessage{}, err
	}
	return c.described(ctx, name)
}

// moveMessage asks for another name.
type moveMessage struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
}

func (c *call) moveEntry(ctx context.Context, in moveMessage) (entryMessage, error) {
	from, err := inward(in.Source)
	if err != nil {
		return entryMessage{}, err
	}
	to, err := inward(in.Destination)
	if err != nil {
		return entryMessage{}, err
	}
	err = c.files().Move(ctx, from, to)
	if cove.CodeOf(err) == cove.NotFound {
		// The directory may be what is missing: clients expect it to be made.
		if _, err := c.files().Stat(ctx, from); err != nil {
			return entryMessage{}, err
		}
		if err := c.files().Mkdir(ctx, path.Dir(to)); err != nil {
			return entryMessage{}, err
		}
		err = c.files().Move(ctx, from, to)
	}
	if err != nil {
		return entryMessage{}, err
	}
	return c.described(ctx, to)
}

// removeEntry removes a file or a directory. What is not there is removed.
func (c *call) removeEntry(ctx context.Context, in pathMessage) (nothing, error) {
	name, err := inward(in.Path)
	if err != nil {
		return nothing{}, err
	}
	err = c.files().Remove(ctx, name)
	if cove.CodeOf(err) == cove.NotFound && !lost(err) {
		err = nil
	}
	return nothing{}, err
}

// listMessage asks for what is below a directory.
type listMessage struct {
	Path  string `json:"path"`
	Depth int    `json:"depth"`
}

// entriesMessage is a list.
type entriesMessage struct {
	Entries []entry `json:"entries"`
}

func (c *call) listDir(ctx context.Context, in listMessage) (entriesMessage, error) {
	name, err := inward(in.Path)
	if err != nil {
		return entriesMessage{}, err
	}
	out := entriesMessage{Entries: []entry{}}
	err = c.below(ctx, name, max(in.Depth, 1), func(info cove.FileInfo) { out.Entries = append(out.Entries, entryOf(ctx, c.files(), info)) })
	return out, err
}

// below visits what is in a directory, as much as one list can hold.
func (c *call) below(ctx context.Context, name string, depth int, visit func(cove.FileInfo)) error {
	count, size := 0, 0
	for info, err := range c.files().List(ctx, name, depth) {
		if err != nil {
			return err
		}
		count, size = count+1, size+len(info.Path)+len(info.Link)
		if count > maxEntries || size > maxListBytes {
			return cove.Errorf(cove.Exhausted, "%.200q holds more than one list can", outward(name)).Remedy("list its directories one by one")
		}
		visit(info)
	}
	return nil
}
