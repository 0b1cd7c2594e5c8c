package volume

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/cove-sandbox/cove"
)

// Bounds of a look.
const (
	maxNesting = 128  // folders in one another, each of which is held open
	maxNames   = 1024 // read at once
)

// Measure implements cove.Folders. Files with several names count once.
func (d *Dir) Measure(ctx context.Context, id cove.ID, enough cove.Filling) (cove.Filling, error) {
	name, err := begin(ctx, id)
	if err != nil {
		return cove.Filling{}, err
	}
	top, err := d.root.OpenRoot(name)
	if errors.Is(err, fs.ErrNotExist) {
		return cove.Filling{}, missing(id)
	}
	if err != nil {
		return cove.Filling{}, fault(d.path, err)
	}
	m := &meter{ctx: ctx, enough: enough, linked: map[uint64]bool{}}
	m.below(top, 0)
	if err := ctx.Err(); err != nil {
		return m.Filling, fault(d.path, err)
	}
	return m.Filling, nil
}

type meter struct {
	cove.Filling

	ctx    context.Context //nolint:containedctx // of the one call that it is made for
	enough cove.Filling
	linked map[uint64]bool // files with several names, by their numbers
}

func (m *meter) done() bool {
	return m.Bytes > m.enough.Bytes || m.Files > m.enough.Files || m.Unseen || m.ctx.Err() != nil
}

// below counts what is in a folder, which it closes.
func (m *meter) below(dir *os.Root, depth int) {
	defer func() { _ = dir.Close() }()
	list, err := dir.Open(".")
	if err != nil {
		m.Unseen = true
		return
	}
	defer func() { _ = list.Close() }()
	for !m.done() {
		names, err := list.Readdirnames(maxNames)
		for _, name := range names {
			if m.one(dir, name, depth); m.done() {
				return
			}
		}
		if err != nil {
			m.Unseen = m.Unseen || !errors.Is(err, io.EOF)
			return
		}
	}
}

func (m *meter) one(dir *os.Root, name string, depth int) {
	info, err := dir.Lstat(name)
	if err != nil {
		m.missed(err)
		return
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		if !info.IsDir() && st.Nlink > 1 {
			if m.linked[st.Ino] {
				return
			}
			m.linked[st.Ino] = true
		}
		m.Bytes += cove.Bytes(st.Blocks * 512)
	}
	m.Files++
	if !info.IsDir() {
		return
	}
	if depth == maxNesting {
		m.Unseen = true
		return
	}
	sub, err := dir.OpenRoot(name)
	if err != nil {
		m.missed(err)
		return
	}
	m.below(sub, depth+1)
}

// missed is told why something could not be looked at. What has gone meanwhile, or
// is something else by now, is counted by the next look.
func (m *meter) missed(err error) {
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, syscall.ELOOP) {
		m.Unseen = true
	}
}
