package fake

import (
	"io/fs"
	"syscall"
)

// ledger counts what a part of the tree holds and refuses what goes beyond its
// bounds. Zero bounds nothing. It is guarded by the tree's mutex.
type ledger struct {
	maxBytes, maxFiles int64
	bytes, files       int64
}

// take books bytes and files, or nothing and ENOSPC. Negative amounts give
// back and always succeed.
func (l *ledger) take(bytes, files int64) error {
	if l == nil {
		return nil
	}
	if bytes > l.room() || files > 0 && l.maxFiles > 0 && l.files+files > l.maxFiles {
		return syscall.ENOSPC
	}
	l.bytes += bytes
	l.files += files
	return nil
}

// give books what was removed.
func (l *ledger) give(bytes, files int64) {
	if l != nil {
		l.bytes -= bytes
		l.files -= files
	}
}

// room is how many bytes are left.
func (l *ledger) room() int64 {
	if l == nil || l.maxBytes == 0 {
		return 1 << 62
	}
	return l.maxBytes - l.bytes
}

// inode identifies a file of the host, whatever its names.
type inode struct{ dev, ino uint64 }

// inodeOf returns the identity of a file and how many names it has.
func inodeOf(fi fs.FileInfo) (inode, uint64) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}, 1
	}
	return inode{uint64(st.Dev), st.Ino}, uint64(st.Nlink) //nolint:unconvert // the widths differ between architectures
}

// weight is how many bytes a file counts for.
func weight(fi fs.FileInfo) int64 {
	if fi.Mode().IsRegular() {
		return fi.Size()
	}
	return 0
}
