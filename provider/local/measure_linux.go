package local

import (
	"os"

	"golang.org/x/sys/unix"
)

// used is how much is in a directory.
type used struct {
	bytes, files int64
	deep         bool // more directories are in one another than are looked at
}

// Bounds of a measurement.
const (
	maxMeasured = 1 << 22 // files
	maxNesting  = 256     // directories in one another, each of which is held open
	maxNames    = 1024    // read at once
)

// measure counts what is below a directory, until it is more than enough. What
// cannot be looked into counts as itself, and nothing is followed: the tree
// changes while we look, by somebody who wants us to look elsewhere.
func measure(dir string, enough used) used {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return used{}
	}
	m := &meter{enough: enough, linked: map[uint64]bool{}}
	m.below(os.NewFile(uintptr(fd), dir), 0)
	return m.used
}

type meter struct {
	used

	enough used
	linked map[uint64]bool // files with several names, by their numbers
}

func (m *meter) done() bool { return m.bytes > m.enough.bytes || m.files > m.enough.files }

// below counts what is in a directory, which it closes.
func (m *meter) below(dir *os.File, depth int) {
	defer func() { _ = dir.Close() }()
	if depth > maxNesting {
		m.deep = true
		return
	}
	for !m.done() {
		names, err := dir.Readdirnames(maxNames)
		for _, name := range names {
			if m.one(int(dir.Fd()), name, depth); m.done() {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (m *meter) one(dir int, name string, depth int) {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return // it went meanwhile
	}
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if !isDir && st.Nlink > 1 {
		if m.linked[st.Ino] {
			return
		}
		m.linked[st.Ino] = true
	}
	m.files++
	m.bytes += st.Blocks * 512
	if !isDir {
		return
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == nil {
		m.below(os.NewFile(uintptr(fd), name), depth+1)
	}
}
