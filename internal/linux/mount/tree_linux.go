package mount

import (
	"os"

	"golang.org/x/sys/unix"
)

// OpenTree returns a copy of the mounts at a path, mounted nowhere: with all
// below it, or only the one. Another process can [Attach] it in a namespace
// that cannot see the path. The caller closes the file, with which the copy is
// gone if nobody attached it.
func OpenTree(path string, recursive bool) (*os.File, error) {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC)
	if recursive {
		flags |= unix.AT_RECURSIVE
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, flags)
	if err != nil {
		return nil, failure("open", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// RestrictTree is [Restrict] for mounts that are mounted nowhere. It needs Linux
// 5.12.
func RestrictTree(tree *os.File, f Flags) error {
	conn, err := tree.SyscallConn()
	if err != nil {
		return failure("restrict", tree.Name(), err)
	}
	var said error
	if err := conn.Control(func(fd uintptr) {
		said = unix.MountSetattr(int(fd), "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: f.attributes()})
	}); err != nil {
		return failure("restrict", tree.Name(), err)
	}
	return failure("restrict", tree.Name(), said)
}

// Attach mounts what [OpenTree] or [Tmpfs.New] made at target, once.
func Attach(tree *os.File, target string) error {
	conn, err := tree.SyscallConn()
	if err != nil {
		return failure("attach to", target, err)
	}
	var said error
	if err := conn.Control(func(fd uintptr) {
		said = unix.MoveMount(int(fd), "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}); err != nil {
		return failure("attach to", target, err)
	}
	return failure("attach to", target, said)
}
