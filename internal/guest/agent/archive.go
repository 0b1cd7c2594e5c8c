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
	p := &packer{w: protocol.NewRecordWriter(out), links: links{names: map[inode]*linked{}}}
	finish(p.w, p.pack(dir, "", maxTreeDepth))
}

// packer writes a tree.
type packer struct {
	w     *protocol.RecordWriter
	links links
}

// pack writes what is in a directory; prefix is its name in the archive.
func (p *packer) pack(dir *os.File, prefix string, depth int) error {
	if depth == 0 {
		return unix.ELOOP
	}
	names, err := entries(dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		full := path.Join(prefix, n)
		err := p.entry(int(dir.Fd()), n, full, depth)
		if errors.Is(err, unix.ENOENT) {
			continue // it went while we looked
		}
		if errno, ok := err.(unix.Errno); ok { //nolint:errorlint // one that has no name yet
			return &os.PathError{Op: "archive", Path: full, Err: errno}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *packer) entry(dir int, name, full string, depth int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	i := describe(full, &st)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		buf := make([]byte, protocol.MaxPath)
		n, err := unix.Readlinkat(dir, name, buf)
		if err != nil {
			return err
		}
		i.Link = string(buf[:n])
		_, err = p.announce(i, &st)
		return err
	case unix.S_IFIFO:
		i.Size = 0
		_, err := p.announce(i, &st)
		return err
	case unix.S_IFDIR, unix.S_IFREG:
	default:
		return nil // sockets and devices stay
	}
	file, err := openOwn(dir, name, &st)
	if errors.Is(err, errKernelFiles) {
		return nil // it stays, too
	}
	if err != nil {
		return err
	}
	defer file.close()
	// What was opened need not be what was looked at.
	if file.st.Mode&unix.S_IFMT != st.Mode&unix.S_IFMT {
		return nil
	}
	return p.opened(file, full, depth)
}

// opened writes a file or a directory with what is in it.
func (p *packer) opened(file *ownFile, full string, depth int) error {
	i := describe(full, &file.st)
	isDir := file.st.Mode&unix.S_IFMT == unix.S_IFDIR
	if isDir {
		i.Size = 0
	}
	linked, err := p.announce(i, &file.st)
	if err != nil || linked {
		return err
	}
	if err := writeAttrs(p.w, file.File); err != nil {
		return err
	}
	if isDir {
		return p.pack(file.File, full, depth-1)
	}
	return p.content(file.File, &file.st)
}

// announce writes what a file is, and reports whether it is only another name of
// one that was written before.
func (p *packer) announce(i protocol.Info, st *unix.Stat_t) (linked bool, err error) {
	other, err := p.links.meet(i.Path, st)
	if err != nil {
		return false, err
	}
	if other != "" {
		i.Link, i.Hard, i.Size = other, true, 0
	}
	return i.Hard, p.w.Write(protocol.RecordFile, i.Encode())
}
