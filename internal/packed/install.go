//go:build linux

package packed

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/cove-sandbox/cove"
)

// Program is an executable inside this one. A plain build has none: Image and ID are
// empty.
type Program struct {
	Name  string // of its file
	Title string // for people
	Image []byte // compressed by gzip
	ID    string // a hash of the executable
	// Alone puts the file, under its name, into a directory that holds nothing else.
	// Otherwise its ID is part of the name.
	Alone bool
}

// Embedded reports whether this build has the program inside.
func (p Program) Embedded() bool { return len(p.Image) > 0 && p.ID != "" }

// installing keeps this process from unpacking a program twice at once.
var installing sync.Mutex

// Installed returns the path of the executable, below dir, which is made by the
// first call of a build; those of other builds go away. Only the caller's user may
// write to dir. The program must be Embedded.
func (p Program) Installed(dir string) (string, error) {
	installing.Lock()
	defer installing.Unlock()
	own := filepath.Join(dir, p.Name+"-"+p.ID)
	path := own
	if p.Alone {
		path = filepath.Join(own, p.Name)
	}
	if installed(path, unpackedSize(p.Image)) {
		return path, nil
	}
	if err := p.install(dir, path); err != nil {
		if code, words, ok := cove.DiskFault(err); ok {
			return "", cove.Wrap(code, err, "%s cannot be written to %s: %s", p.Title, dir, words)
		}
		return "", cove.Wrap(cove.Unavailable, err, "%s cannot be written to %s", p.Title, dir)
	}
	p.sweep(own)
	return path, nil
}

// unpackedSize is the size of what is packed, which its last bytes tell.
func unpackedSize(image []byte) int64 {
	if len(image) < 4 {
		return 0
	}
	return int64(binary.LittleEndian.Uint32(image[len(image)-4:]))
}

// installed reports whether the file is there, whole and ours.
func installed(path string, size int64) bool {
	var st syscall.Stat_t
	return syscall.Lstat(path, &st) == nil && st.Mode == syscall.S_IFREG|0o555 && st.Size == size && int(st.Uid) == os.Geteuid()
}

// install writes the file under another name first: it appears only whole.
func (p Program) install(dir, path string) error {
	r, err := gzip.NewReader(bytes.NewReader(p.Image))
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	f, err := os.CreateTemp(dir, p.Name+"-*.new")
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, r, unpackedSize(p.Image))
	if err == nil {
		// Only at its end does it say whether it was whole.
		if n, last := r.Read(make([]byte, 1)); n != 0 || !errors.Is(last, io.EOF) {
			err = fmt.Errorf("unpack: it is not whole: %w", last)
		}
	}
	err = errors.Join(err, f.Chmod(0o555), f.Sync(), f.Close())
	if err == nil && p.Alone {
		err = emptyDir(filepath.Dir(path))
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// emptyDir makes a directory that sandboxes may look into, in the place of whatever
// is there.
func emptyDir(path string) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return os.Chmod(path, 0o755) //nolint:gosec // Programs in sandboxes have users of their own.
}

// sweep removes those of other builds. Sandboxes that run one go on, and who needs
// one makes it again.
func (p Program) sweep(own string) {
	old, _ := filepath.Glob(filepath.Join(filepath.Dir(own), p.Name+"-"+strings.Repeat("[0-9a-f]", len(p.ID)))) // the pattern is good
	for _, name := range old {
		if name != own {
			_ = os.RemoveAll(name) // it only takes room
		}
	}
}
