package mount

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Tmpfs is a file system in memory that takes so much and no more. Its bounds
// are the kernel's: a write or a create that would pass them is ENOSPC.
type Tmpfs struct {
	Size     int64 // bytes, rounded up to pages; at least 1
	Files    int64 // files, directories and links that fit in; at least 1
	Mode     os.FileMode
	UID, GID int // the owner of its root, as this namespace numbers users
	Flags    Flags
}

// option is one setting of a file system.
type option struct{ name, value string }

func (t Tmpfs) options() ([]option, error) {
	// Zero would mean no bound at all to the kernel.
	if t.Size < 1 || t.Files < 1 {
		return nil, fmt.Errorf("mount: a tmpfs of %d bytes and %d files has no bounds", t.Size, t.Files)
	}
	// Its root is a file, too.
	return []option{
		{"size", strconv.FormatInt(t.Size, 10)},
		{"nr_inodes", strconv.FormatInt(t.Files+1, 10)},
		{"mode", strconv.FormatUint(uint64(unixMode(t.Mode)), 8)},
		{"uid", strconv.Itoa(t.UID)},
		{"gid", strconv.Itoa(t.GID)},
	}, nil
}

func unixMode(m os.FileMode) uint32 {
	mode := uint32(m.Perm())
	if m&os.ModeSticky != 0 {
		mode |= unix.S_ISVTX
	}
	return mode
}

func join(options []option) string {
	var all []string
	for _, o := range options {
		all = append(all, o.name+"="+o.value)
	}
	return strings.Join(all, ",")
}

// Mount mounts an empty one at target.
func (t Tmpfs) Mount(target string) error {
	options, err := t.options()
	if err != nil {
		return err
	}
	return failure("tmpfs on", target, unix.Mount("tmpfs", target, "tmpfs", t.Flags.bits(), join(options)))
}

// ResizeTree gives what [Tmpfs.New] made these bounds, wherever it is mounted by
// now, also in a namespace that the caller is not in. It fails if more is in it
// already. Mode, owner and flags stay as they are.
func (t Tmpfs) ResizeTree(tree *os.File) error {
	options, err := t.options()
	if err != nil {
		return err
	}
	conn, err := tree.SyscallConn()
	if err != nil {
		return failure("resize", tree.Name(), err)
	}
	var said error
	if err := conn.Control(func(fd uintptr) { said = reconfigure(int(fd), options[:2]) }); err != nil {
		return failure("resize", tree.Name(), err)
	}
	return failure("resize", tree.Name(), said)
}

func reconfigure(tree int, options []option) error {
	fs, err := unix.Fspick(tree, "", unix.FSPICK_EMPTY_PATH|unix.FSPICK_CLOEXEC)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fs) }()
	for _, o := range options {
		if err := unix.FsconfigSetString(fs, o.name, o.value); err != nil {
			return err
		}
	}
	return unix.FsconfigReconfigure(fs)
}

// New makes one that is mounted nowhere yet; see [Attach]. The caller closes
// the file, with which it is gone if nobody attached it.
func (t Tmpfs) New() (*os.File, error) {
	options, err := t.options()
	if err != nil {
		return nil, err
	}
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, failure("open", "tmpfs", err)
	}
	defer func() { _ = unix.Close(fs) }()
	for _, o := range options {
		if err := unix.FsconfigSetString(fs, o.name, o.value); err != nil {
			return nil, failure("set "+o.name+" of", "tmpfs", err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return nil, failure("create", "tmpfs", err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, int(t.Flags.attributes())) //nolint:gosec // a few low bits
	if err != nil {
		return nil, failure("mount", "tmpfs", err)
	}
	return os.NewFile(uintptr(fd), "tmpfs"), nil
}
