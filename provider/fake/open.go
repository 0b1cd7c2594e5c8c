package fake

import (
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/cove-sandbox/cove"
)

// hostFile is a regular file of the tree, open for a program.
type hostFile struct {
	t       *tree
	f       *os.File
	at      place
	id      inode
	writes  bool
	appends bool
}

// openFile opens a name for a process as open(2) does.
func (t *tree) openFile(p *proc, name string, flag int) (*file, error) {
	var opened *file
	err := t.do(func() error {
		fi, at, err := t.stat(name, true)
		switch {
		case err == nil && at.node != nil && at.node.device != nil:
			opened, err = at.node.device(p)
			return err
		case err == nil && fi.IsDir():
			return syscall.EISDIR
		case err == nil && !fi.Mode().IsRegular():
			return syscall.EACCES
		case err != nil && (at.abs == "" || flag&os.O_CREATE == 0):
			return err
		}
		h := &hostFile{t: t, at: at, writes: flag&(os.O_WRONLY|os.O_RDWR) != 0, appends: flag&os.O_APPEND != 0}
		if err := h.open(name, fi, flag); err != nil {
			return err
		}
		opened = newFile(h)
		return nil
	})
	return opened, err
}

// open opens the file of the host. fi is nil where there is none yet.
func (h *hostFile) open(name string, fi fs.FileInfo, flag int) error {
	if h.writes {
		at, err := h.t.writable(name, true)
		if err != nil {
			return err
		}
		h.at = at
	} else if h.at.on == nil {
		return syscall.EACCES
	}
	if fi == nil {
		if err := h.at.on.book.take(0, 1); err != nil {
			return err
		}
	}
	f, err := h.at.on.root.OpenFile(h.at.name, flag, 0o644)
	if err != nil {
		if fi == nil {
			h.at.on.book.give(0, 1)
		}
		return err
	}
	h.f = f
	now, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return err
	}
	h.id, _ = inodeOf(now)
	switch {
	case fi == nil:
		h.t.notify(cove.Created, h.at.abs)
	case flag&os.O_TRUNC != 0:
		h.at.on.book.give(fi.Size(), 0)
		h.t.notify(cove.Modified, h.at.abs)
	}
	if h.writes {
		h.t.open[h.id]++
	}
	return nil
}

func (h *hostFile) read(_ *proc, b []byte) (int, error) { return h.f.Read(b) }

// write books what the file grows by. Where there is not enough room it writes
// what fits, as a kernel does.
func (h *hostFile) write(p *proc, b []byte) (int, error) {
	if !h.writes {
		return 0, syscall.EBADF
	}
	n := 0
	err := h.t.do(func() error {
		if p.over() {
			return errDead
		}
		fi, err := h.f.Stat()
		if err != nil {
			return err
		}
		at := fi.Size()
		if !h.appends {
			if at, err = h.f.Seek(0, io.SeekCurrent); err != nil {
				return err
			}
		}
		most := fi.Size() + h.at.on.book.room()
		fits := b[:max(0, min(int64(len(b)), most-at))]
		n, err = h.f.Write(fits)
		_ = h.at.on.book.take(max(0, at+int64(n)-fi.Size()), 0)
		if n > 0 {
			h.t.notify(cove.Modified, h.at.abs)
		}
		if err == nil && n < len(b) {
			err = syscall.ENOSPC
		}
		return err
	})
	return n, err
}

func (h *hostFile) close() {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	if h.writes {
		if h.t.open[h.id]--; h.t.open[h.id] == 0 {
			delete(h.t.open, h.id)
			if book := h.t.orphans[h.id]; book != nil {
				delete(h.t.orphans, h.id)
				if fi, err := h.f.Stat(); err == nil {
					book.give(fi.Size(), 0)
				}
			}
		}
	}
	_ = h.f.Close()
}

// maxScript bounds what is read as a whole: scripts and sources.
const maxScript = 4 << 20

// slurp returns the content of a small file.
func (t *tree) slurp(name string) ([]byte, error) {
	var text []byte
	err := t.do(func() error {
		fi, p, err := t.stat(name, true)
		switch {
		case err != nil:
			return err
		case fi.IsDir():
			return syscall.EISDIR
		case p.on == nil || !fi.Mode().IsRegular():
			return syscall.EACCES
		case fi.Size() > maxScript:
			return syscall.EFBIG
		}
		text, err = p.on.root.ReadFile(p.name)
		return err
	})
	return text, err
}
