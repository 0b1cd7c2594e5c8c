//go:build linux

package agent

import (
	"os"

	"golang.org/x/sys/unix"
)

// What is counted one by one has bounds: who makes more than that is told less than
// there is.
const (
	mostCounted = 1 << 20
	deepCounted = 128 // each level takes a descriptor
	countAtOnce = 512
)

// tally is what was found in a directory that shares its file system with others.
type tally struct {
	device uint64
	bytes  int64
	files  int64
}

// count counts what is below a directory, and not what else is mounted there.
func count(name string) (t tally, err error) {
	fd, err := openDir(unix.AT_FDCWD, name)
	if err != nil {
		return t, err
	}
	dir := os.NewFile(uintptr(fd), name)
	defer func() { _ = dir.Close() }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return t, err
	}
	t.device = st.Dev
	t.below(dir, deepCounted)
	return t, nil
}

func (t *tally) below(dir *os.File, depth int) {
	for {
		names, err := dir.Readdirnames(countAtOnce)
		for _, name := range names {
			if t.files >= mostCounted {
				return
			}
			t.add(int(dir.Fd()), name, depth)
		}
		if err != nil {
			return
		}
	}
}

// add counts one file. One with several names counts for each, and its bytes are
// shared among them. What goes away meanwhile does not count.
func (t *tally) add(at int, name string, depth int) {
	var st unix.Stat_t
	if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Dev != t.device {
		return
	}
	t.files++
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		t.bytes += st.Blocks * blockSize / max(1, int64(st.Nlink)) //nolint:gosec // no file has that many names
		return
	}
	t.bytes += st.Blocks * blockSize
	if depth <= 1 {
		return
	}
	fd, err := openDir(at, name)
	if err != nil {
		return
	}
	sub := os.NewFile(uintptr(fd), name)
	defer func() { _ = sub.Close() }()
	t.below(sub, depth-1)
}

// blockSize is what the kernel counts the room of a file in.
const blockSize = 512
