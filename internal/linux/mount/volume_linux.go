package mount

import (
	"os"

	"golang.org/x/sys/unix"
)

// Find opens a path for use by [CloneAll] and the like, in the namespace of the
// calling thread. No part of it may be a symbolic link: what is opened is where
// the path says, whatever somebody does to the tree meanwhile. It needs Linux
// 5.6.
func Find(path string) (*os.File, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, failure("find", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// CloneAll is [OpenTree] with all below it, of what a descriptor stands for. The
// descriptor must have been opened in the mount namespace of the caller.
func CloneAll(fd int) (*os.File, error) {
	tree, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	if err != nil {
		return nil, failure("clone", "a tree", err)
	}
	return os.NewFile(uintptr(tree), "tree"), nil
}

// Confine cuts mounts that are mounted nowhere off from those that they were
// cloned from, and adds flags, to all of them. It needs Linux 5.12.
func Confine(tree *os.File, f Flags) error {
	return setAttributes(tree, "confine", unix.MountAttr{Attr_set: f.attributes(), Propagation: unix.MS_PRIVATE})
}

// MapUsers shows the files of mounts that are mounted nowhere as those of other
// users: who is n in the user namespace is shown as who n is outside of it. The
// file systems must be able to, and the kernel is Linux 5.12 or newer.
func MapUsers(tree *os.File, namespace int) error {
	return setAttributes(tree, "map the users of", unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(namespace)}) //nolint:gosec // a descriptor
}

func setAttributes(tree *os.File, what string, a unix.MountAttr) error {
	conn, err := tree.SyscallConn()
	if err != nil {
		return failure(what, tree.Name(), err)
	}
	var said error
	if err := conn.Control(func(fd uintptr) {
		said = unix.MountSetattr(int(fd), "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &a)
	}); err != nil {
		return failure(what, tree.Name(), err)
	}
	return failure(what, tree.Name(), said)
}

// AttachTo is [Attach] to what a descriptor stands for.
func AttachTo(tree, target *os.File) error {
	from, err := tree.SyscallConn()
	if err != nil {
		return failure("attach to", target.Name(), err)
	}
	to, err := target.SyscallConn()
	if err != nil {
		return failure("attach to", target.Name(), err)
	}
	var said error
	move := func(a uintptr) {
		if err := to.Control(func(b uintptr) {
			said = unix.MoveMount(int(a), "", int(b), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
		}); err != nil {
			said = err
		}
	}
	if err := from.Control(move); err != nil {
		said = err
	}
	return failure("attach to", target.Name(), said)
}
