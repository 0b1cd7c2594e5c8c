//go:build linux

package agent

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// maxEntries bounds one directory: its names are sorted in memory.
const maxEntries = 1 << 20

// entries returns the names in a directory, in order.
func entries(dir *os.File) ([]string, error) {
	names, err := dir.Readdirnames(maxEntries)
	if err != nil && len(names) == 0 {
		if protocol.AtEnd(err) {
			return nil, nil
		}
		return nil, err
	}
	if len(names) >= maxEntries {
		return nil, unix.EOVERFLOW
	}
	slices.Sort(names)
	return names, nil
}

// list writes what is below a directory as records.
func (s *server) list(m *protocol.Message, f protocol.File) {
	dir, err := openKind(f.Name, unix.S_IFDIR)
	if err != nil {
		s.reply(m.ID, failure(err))
		return
	}
	defer func() { _ = dir.Close() }()
	s.reply(m.ID, protocol.Reply{})
	out := m.Streams[0].File("list")
	defer func() { _ = out.Close() }()
	w := protocol.NewRecordWriter(out)
	finish(w, listBelow(w, dir, f.Depth))
}

func listBelow(w *protocol.RecordWriter, dir *os.File, depth int) error {
	names, err := entries(dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		full := filepath.Join(dir.Name(), n)
		i, err := inspect(int(dir.Fd()), n, full)
		if errors.Is(err, unix.ENOENT) {
			continue // it went while we looked
		}
		if err != nil {
			return err
		}
		if err := w.Write(protocol.RecordFile, i.Encode()); err != nil {
			return err
		}
		if depth <= 1 || i.Mode&unix.S_IFMT != unix.S_IFDIR {
			continue
		}
		if err := listInto(w, int(dir.Fd()), n, full, depth-1); err != nil {
			return err
		}
	}
	return nil
}

func listInto(w *protocol.RecordWriter, at int, base, name string, depth int) error {
	fd, err := openDir(at, base)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.EACCES), errors.Is(err, errKernelFiles):
		return nil // changed while we looked, closed to the sandbox's user, or the kernel's
	case err != nil:
		return err
	}
	dir := os.NewFile(uintptr(fd), name)
	defer func() { _ = dir.Close() }()
	return listBelow(w, dir, depth)
}
