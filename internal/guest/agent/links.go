//go:build linux

package agent

import (
	"golang.org/x/sys/unix"
)

// maxLinkBytes bounds the names that are remembered for files with several.
const maxLinkBytes = 32 << 20

type inode struct{ dev, ino uint64 }

type linked struct {
	name string
	left uint64 // names that were not met yet
}

// links remembers the files that have several names, until all were met.
type links struct {
	names map[inode]*linked
	bytes int
}

// meet returns the name under which a file was met before, if it was.
func (l *links) meet(name string, st *unix.Stat_t) (other string, err error) {
	if st.Nlink < 2 || st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return "", nil
	}
	key := inode{st.Dev, st.Ino}
	if met := l.names[key]; met != nil {
		if met.left--; met.left == 0 {
			l.bytes -= len(met.name)
			delete(l.names, key)
		}
		return met.name, nil
	}
	const each = 64
	if l.bytes += len(name); l.bytes+each*len(l.names) > maxLinkBytes {
		return "", unix.EMLINK
	}
	l.names[key] = &linked{name: name, left: uint64(st.Nlink) - 1} //nolint:unconvert // narrower on other machines
	return "", nil
}
