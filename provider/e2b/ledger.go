//go:build linux

package e2b

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/cove-sandbox/cove"
)

// record is what is kept of a sandbox for who takes it up.
type record struct {
	ID        cove.ID           `json:"id"`
	Machine   string            `json:"machine"`
	Env       map[string]string `json:"env,omitempty"`
	Isolation cove.Isolation    `json:"isolation"`
	CPUs      float64           `json:"cpus,omitempty"` // of the machine, for what it costs
	Memory    cove.Bytes        `json:"memory,omitempty"`
}

// ledger keeps records as files, which nobody else may read: environments hold
// secrets. Its directory is made when there is something to keep.
type ledger struct {
	path string

	mu  sync.Mutex
	dir *os.Root // guarded by mu; nil until it is needed

	naming sync.Mutex // held by who reads or makes the owner's name
	name   string     // guarded by naming
}

func newLedger(path string) *ledger { return &ledger{path: path} }

const suffix = ".json"

// open returns the directory. Unless it is to be made, one that is not there is
// fs.ErrNotExist.
func (l *ledger) open(make bool) (*os.Root, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dir != nil {
		return l.dir, nil
	}
	var err error
	if make {
		err = os.MkdirAll(l.path, 0o700)
	}
	if err == nil {
		l.dir, err = os.OpenRoot(l.path)
	}
	if err != nil {
		l.dir = nil
		return nil, cove.Wrap(cove.Unavailable, err, "the directory %s of provider e2b cannot be used", l.path).Remedy("mend its permissions, or set COVE_HOME")
	}
	return l.dir, nil
}

func (l *ledger) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dir == nil {
		return nil
	}
	return l.dir.Close()
}

func (l *ledger) put(r record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return cove.Wrap(cove.Internal, err, "the record of a sandbox cannot be written")
	}
	dir, err := l.open(true)
	if err != nil {
		return err
	}
	file := string(r.ID) + suffix
	err = dir.WriteFile(file+".new", text, 0o600)
	if err == nil {
		err = dir.Rename(file+".new", file)
	}
	if err != nil {
		return cove.Wrap(cove.Unavailable, err, "the record of a sandbox cannot be written").Remedy("free space below COVE_HOME, or mend its permissions")
	}
	return nil
}

// get returns a record, and whether there is one that can be read.
func (l *ledger) get(id cove.ID) (record, bool) {
	dir, err := l.open(false)
	if err != nil {
		return record{}, false
	}
	text, err := dir.ReadFile(string(id) + suffix)
	var r record
	return r, err == nil && json.Unmarshal(text, &r) == nil && r.ID == id && machineID.MatchString(r.Machine)
}

func (l *ledger) drop(id cove.ID) error {
	dir, err := l.open(false)
	if err == nil {
		err = dir.Remove(string(id) + suffix)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cove.Wrap(cove.Unavailable, err, "the record of a sandbox cannot be removed").Remedy("mend the permissions below COVE_HOME")
	}
	return nil
}

// ids returns those that have a record.
func (l *ledger) ids() ([]cove.ID, error) {
	dir, err := l.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the records of sandboxes cannot be read").Remedy("mend the permissions below COVE_HOME")
	}
	var ids []cove.ID
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), suffix); ok && cove.ID(id).Valid() {
			ids = append(ids, cove.ID(id))
		}
	}
	return ids, nil
}

// owner returns the name by which E2B knows what is ours, making one at first.
func (l *ledger) owner() (string, error) {
	const file = "owner"
	l.naming.Lock()
	defer l.naming.Unlock()
	if l.name != "" {
		return l.name, nil
	}
	dir, err := l.open(true)
	if err != nil {
		return "", err
	}
	text, err := dir.ReadFile(file)
	if err == nil && cove.ID(text).Valid() {
		l.name = string(text)
		return l.name, nil
	}
	id := string(cove.NewID())
	if err = dir.WriteFile(file+".new", []byte(id), 0o600); err == nil {
		err = dir.Rename(file+".new", file)
	}
	if err != nil {
		return "", cove.Wrap(cove.Unavailable, err, "the name of this owner of machines cannot be written").Remedy("free space below COVE_HOME, or mend its permissions")
	}
	l.name = id
	return id, nil
}
