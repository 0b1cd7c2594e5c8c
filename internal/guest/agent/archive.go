//go:build linux

package agent

import (
	"errors"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// maxTreeDepth bounds how deep directories are followed: each level holds a
// descriptor.
const maxTreeDepth = 200

// archive writes a tree as records, from which the host makes an archive.
func (s *server) archive(m *protocol.Message, f protocol.File) {
	dir, err := openKind(f.Name, unix.S_IFDIR)
	if err != nil {
		s.reply(m.ID, failure(err))
		return
	}
	defer func() { _ = dir.Close() }()
	s.reply(m.ID, protocol.Reply{})
	out := m.Streams[0].File("archive")
	defer func() { _ = out.Close() }()
	w := protocol.NewRecordWriter(out)
	finish(w, pack(w, dir, "", maxTreeDepth))
}

// pack writes what is in a directory; prefix is its name in the archive.
func pack(w *protocol.RecordWriter, dir *os.File, prefix string, depth int) error {
	if depth == 0 {
		return unix.ELOOP
	}
	names, err := entries(dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		err := packEntry(w, int(dir.Fd()), n, path.Join(prefix, n), depth)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}

func packEntry(w *protocol.RecordWriter, dir int, name, full string, depth int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		buf := make([]byte, protocol.MaxPath)
		n, err := unix.Readlinkat(dir, name, buf)
		if err != nil {
			return err
		}
		i := describe(full, &st)
		i.Link = string(buf[:n])
		return w.Write(protocol.RecordFile, i.Encode())
	case unix.S_IFDIR, unix.S_IFREG:
	default:
		return nil // sockets, pipes and devices stay
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	// What was opened need not be what was looked at.
	var opened unix.Stat_t
	if err := unix.Fstat(fd, &opened); err != nil || opened.Mode&unix.S_IFMT != st.Mode&unix.S_IFMT {
		_ = unix.Close(fd)
		return err
	}
	_ = unix.SetNonblock(fd, false)
	file := os.NewFile(uintptr(fd), full)
	defer func() { _ = file.Close() }()
	i := describe(full, &opened)
	if err := w.Write(protocol.RecordFile, i.Encode()); err != nil {
		return err
	}
	if opened.Mode&unix.S_IFMT == unix.S_IFDIR {
		return pack(w, file, full, depth-1)
	}
	return w.Copy(file, i.Size)
}
