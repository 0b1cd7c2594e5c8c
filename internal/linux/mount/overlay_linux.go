package mount

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// MaxLayers bounds the lower layers of an [Overlay]: their names must fit into
// one option.
const MaxLayers = 12

// Overlay is a tree of layers, each given by a descriptor of its directory. What
// the layers say about renames and about content that is elsewhere is not
// believed: whoever wrote into one of them reaches nothing outside of them.
type Overlay struct {
	Lower       []int // the topmost first
	Upper, Work int   // of one file system, outside of the lower ones; -1 makes a tree that nobody can write to
	// User keeps the notes of the overlay where an ordinary user may write them.
	User bool
	// Source is what the list of mounts says of it; a few letters.
	Source string
	Flags  Flags
	// Proc is a descriptor of a /proc that shows the calling process.
	Proc int
}

// New makes one that is mounted nowhere yet, as [Tmpfs.New] does. It leaves the
// calling thread in another directory, which must be of no matter to anybody.
func (o Overlay) New() (*os.File, error) {
	if len(o.Lower) == 0 || len(o.Lower) > MaxLayers {
		return nil, failure("stack", "overlay", unix.E2BIG)
	}
	// Layers have no path that leads to them but this one.
	if err := unix.Fchdir(o.Proc); err != nil {
		return nil, failure("enter", "/proc", err)
	}
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, failure("open", "overlay", err)
	}
	defer func() { _ = unix.Close(fs) }()
	for _, s := range o.options() {
		if s.value == "" {
			err = unix.FsconfigSetFlag(fs, s.name)
		} else {
			err = unix.FsconfigSetString(fs, s.name, s.value)
		}
		if err != nil {
			return nil, failure("set "+s.name+" of", "overlay", err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return nil, failure("create", "overlay", err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, int(o.Flags.attributes())) //nolint:gosec // a few low bits
	if err != nil {
		return nil, failure("mount", "overlay", err)
	}
	return os.NewFile(uintptr(fd), "overlay"), nil
}

func (o Overlay) options() []option {
	at := func(fd int) string { return "self/fd/" + strconv.Itoa(fd) }
	var lower []string
	for _, fd := range o.Lower {
		lower = append(lower, at(fd))
	}
	all := []option{
		{"lowerdir", strings.Join(lower, ":")},
		{"index", "off"},
		{"xino", "off"},
		{"metacopy", "off"},
		{"redirect_dir", "nofollow"},
	}
	if o.Source != "" {
		all = append(all, option{"source", o.Source})
	}
	if o.User {
		all = append(all, option{name: "userxattr"})
	}
	if o.Upper >= 0 {
		// A uuid would be a note of its own.
		all = append(all, option{"uuid", "null"}, option{"upperdir", at(o.Upper)}, option{"workdir", at(o.Work)})
	}
	return all
}

// Clone returns a copy of the mount of a directory, of which the named one below
// it is the root, mounted nowhere. The directory may be in a mount that is
// mounted nowhere itself, from Linux 6.15 on.
func Clone(dir int, name string) (*os.File, error) {
	fd, err := unix.OpenTree(dir, name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return nil, failure("clone", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Leave takes away what is mounted at target, unless somebody uses it: that is
// EBUSY, and nothing has changed then.
func Leave(target string) error {
	return failure("leave", target, unix.Unmount(target, unix.UMOUNT_NOFOLLOW))
}

// Mounted reports whether something is mounted at target.
func Mounted(target string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, target, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, 0, &st)
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
