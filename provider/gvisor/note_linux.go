package gvisor

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cove-sandbox/cove"
)

// note is what is written down of a sandbox or of a snapshot. It is there before
// the sandbox, and the last that goes.
type note struct {
	Bundle    string            `json:"bundle"` // its name with the runtime
	Spec      cove.Spec         `json:"spec"`
	Isolation cove.Isolation    `json:"isolation"`
	Digest    string            `json:"digest,omitempty"` // of the template
	Env       map[string]string `json:"env,omitempty"`    // of the template
	Root      string            `json:"root"`
	Places    places            `json:"places"`
	Runtime   string            `json:"runtime"` // the version that made it
	Host      string            `json:"host"`    // what the host's programs were then
	Paused    bool              `json:"paused,omitempty"`
}

// notes is a directory of them.
type notes struct{ dir string }

const noteSuffix = ".json"

// mostNote bounds one: a spec is bounded too.
const mostNote = 4 << 20

func (n notes) path(id cove.ID) string { return filepath.Join(n.dir, string(id)+noteSuffix) }

// list returns the ids that something is written down of.
func (n notes) list() ([]cove.ID, error) {
	list, err := os.ReadDir(n.dir)
	if err != nil {
		return nil, diskError(err, "the directory of provider "+name+" cannot be read")
	}
	var ids []cove.ID
	for _, e := range list {
		if id, ok := strings.CutSuffix(e.Name(), noteSuffix); ok && cove.ID(id).Valid() {
			ids = append(ids, cove.ID(id))
		}
	}
	return ids, nil
}

// read returns a note; [os.ErrNotExist] if there is none.
func (n notes) read(id cove.ID) (*note, error) { return readNote(n.path(id)) }

func readNote(path string) (*note, error) {
	f, err := os.Open(path) //nolint:gosec // in a directory of ours
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var one note
	if err := json.NewDecoder(io.LimitReader(f, mostNote)).Decode(&one); err != nil {
		return nil, err
	}
	return &one, nil
}

// write replaces a note. It appears only whole.
func (n notes) write(id cove.ID, one *note) error { return writeNote(n.path(id), one) }

func writeNote(path string, one *note) error {
	text, err := json.Marshal(one)
	if err != nil {
		return cove.Wrap(cove.Internal, err, "a sandbox cannot be written down")
	}
	if err = os.WriteFile(path+".new", text, 0o600); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return errors.Join(diskError(err, "a sandbox cannot be written down"), removeFile(path+".new"))
	}
	return nil
}

func (n notes) remove(id cove.ID) error {
	if err := removeFile(n.path(id)); err != nil {
		return diskError(err, "what is written down of a sandbox cannot be removed")
	}
	return nil
}

// removeFile removes a file; one that is not there is no error.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// has reports whether something is written down under an id.
func (n notes) has(id cove.ID) bool {
	_, err := os.Lstat(n.path(id))
	return err == nil
}
