//go:build linux

package docker

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cove-sandbox/cove"
)

// note is what is written down of a sandbox, for the next process.
type note struct {
	Container string            `json:"container"`
	Volume    string            `json:"volume,omitempty"` // its workspace
	Spec      cove.Spec         `json:"spec"`
	Isolation cove.Isolation    `json:"isolation"`
	Env       map[string]string `json:"env,omitempty"` // of its image
	Memory    cove.Bytes        `json:"memory,omitempty"`
	Paused    bool              `json:"paused,omitempty"`
}

const (
	noteDir    = "boxes"
	noteSuffix = ".json"
)

func (p *Provider) noteFile(id cove.ID) string {
	return filepath.Join(p.cfg.Dir, noteDir, string(id)+noteSuffix)
}

// writeNote writes down what a sandbox is.
func (p *Provider) writeNote(id cove.ID, n note) error {
	text, err := json.Marshal(n)
	if err == nil {
		if err = os.MkdirAll(filepath.Join(p.cfg.Dir, noteDir), 0o700); err == nil {
			err = writeFile(p.noteFile(id), text)
		}
	}
	if err != nil {
		return cove.Wrap(cove.Unavailable, err, "sandbox %s cannot be written down in %s: %s", id, p.cfg.Dir, reasonOf(err)).Remedy("make room there")
	}
	return nil
}

// readNote reads what a sandbox is; false if nothing good is written down.
func (p *Provider) readNote(id cove.ID) (n note, ok bool) {
	text, err := os.ReadFile(p.noteFile(id))
	return n, err == nil && json.Unmarshal(text, &n) == nil && n.Container != ""
}

func (p *Provider) dropNote(id cove.ID) error {
	if err := os.Remove(p.noteFile(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cove.Wrap(cove.Unavailable, err, "what is written down of sandbox %s cannot be removed", id)
	}
	return nil
}

// notes are the ids of all that is written down.
func (p *Provider) notes() (ids []cove.ID) {
	list, _ := os.ReadDir(filepath.Join(p.cfg.Dir, noteDir)) // none where there is no directory
	for _, entry := range list {
		if id := cove.ID(strings.TrimSuffix(entry.Name(), noteSuffix)); id.Valid() {
			ids = append(ids, id)
		}
	}
	return ids
}
