//go:build linux

package microsandbox

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/cove-sandbox/cove"
)

// notes is what is written down of sandboxes, one file each, and by which name
// machines are known as ours: others may use the same server.
type notes struct {
	root  *os.Root
	owner string
}

// note is what must be known of a sandbox after a restart.
type note struct {
	Transport string    `json:"transport"`
	Spec      cove.Spec `json:"spec"`
	Made      bool      `json:"made"` // false: a start that is not done, or was never

	Fence *cove.Isolation `json:"fence,omitempty"` // as the transport said when it was made
}

const (
	ownerFile  = "owner"
	noteSuffix = ".json"
	ownerBytes = 4
	maxNote    = 1 << 20
)

func openNotes(dir string) (*notes, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, stateFault(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, stateFault(err)
	}
	n := &notes{root: root}
	if n.owner, err = n.ownership(); err != nil {
		_ = root.Close()
		return nil, stateFault(err)
	}
	return n, nil
}

func stateFault(err error) error {
	if code, words, ok := cove.DiskFault(err); ok {
		return cove.Wrap(code, err, "the state of provider %s: %s", name, words)
	}
	return cove.Wrap(cove.Unavailable, err, "the state of provider %s cannot be used", name).Remedy("check COVE_HOME and who owns it")
}

// ownership reads our name, and makes one the first time.
func (n *notes) ownership() (string, error) {
	text, err := n.root.ReadFile(ownerFile)
	if err == nil {
		if b, err := hex.DecodeString(string(text)); err == nil && len(b) == ownerBytes {
			return string(text), nil
		}
		return "", errors.New("the file owner does not hold a name")
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	var lot [ownerBytes]byte
	_, _ = rand.Read(lot[:]) // never fails since Go 1.24
	name := hex.EncodeToString(lot[:])
	return name, n.write(ownerFile, []byte(name))
}

// write makes a file appear whole.
func (n *notes) write(file string, content []byte) error {
	f, err := n.root.OpenFile(file+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = n.root.Rename(file+".new", file)
	}
	if err != nil {
		return errors.Join(err, n.root.Remove(file+".new"))
	}
	return nil
}

// machine is the name of the machine of a sandbox.
func (n *notes) machine(id cove.ID) string { return "cove-" + n.owner + "-" + string(id) }

// id is the other way round.
func (n *notes) id(machine string) (cove.ID, bool) {
	text, ours := strings.CutPrefix(machine, "cove-"+n.owner+"-")
	return cove.ID(text), ours && cove.ID(text).Valid()
}

func (n *notes) save(id cove.ID, rec note) error {
	b, err := json.Marshal(rec)
	if err != nil {
		return cove.Wrap(cove.Internal, err, "the sandbox cannot be written down")
	}
	if err := n.write(string(id)+noteSuffix, b); err != nil {
		return stateFault(err)
	}
	return nil
}

// read is NotFound where nothing is written down.
func (n *notes) read(id cove.ID) (rec note, err error) {
	f, err := n.root.Open(string(id) + noteSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return rec, cove.Errorf(cove.NotFound, "sandbox %s is unknown to provider %s", id, name)
	}
	if err != nil {
		return rec, stateFault(err)
	}
	defer func() { _ = f.Close() }()
	if i, err := f.Stat(); err != nil || i.Size() > maxNote {
		return rec, stateFault(errors.Join(err, errors.New("the note is too large")))
	}
	if err := json.NewDecoder(f).Decode(&rec); err != nil {
		return note{}, stateFault(err)
	}
	return rec, nil
}

func (n *notes) drop(id cove.ID) error {
	if err := n.root.Remove(string(id) + noteSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return stateFault(err)
	}
	return nil
}

func (n *notes) list() (map[cove.ID]bool, error) {
	entries, err := fs.ReadDir(n.root.FS(), ".")
	if err != nil {
		return nil, stateFault(err)
	}
	found := map[cove.ID]bool{}
	for _, e := range entries {
		if text, ok := strings.CutSuffix(e.Name(), noteSuffix); ok && cove.ID(text).Valid() {
			found[cove.ID(text)] = true
		}
	}
	return found, nil
}

func (n *notes) close() error { return n.root.Close() }
