package mount

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Flags bound what can be done with a mount, whatever the modes of files say.
type Flags uint

// The flags.
const (
	ReadOnly Flags = 1 << iota
	NoSetuid       // programs gain nothing from set-user-id bits and file capabilities
	NoDevices
	NoExecute
)

var flagNames = []struct {
	flag Flags
	name string  // in mount tables
	set  uint64  // for mount_setattr
	bind uintptr // for mount
}{
	{ReadOnly, "ro", unix.MOUNT_ATTR_RDONLY, unix.MS_RDONLY},
	{NoSetuid, "nosuid", unix.MOUNT_ATTR_NOSUID, unix.MS_NOSUID},
	{NoDevices, "nodev", unix.MOUNT_ATTR_NODEV, unix.MS_NODEV},
	{NoExecute, "noexec", unix.MOUNT_ATTR_NOEXEC, unix.MS_NOEXEC},
}

func (f Flags) attributes() uint64 {
	var all uint64
	for _, n := range flagNames {
		if f&n.flag != 0 {
			all |= n.set
		}
	}
	return all
}

func (f Flags) bits() uintptr {
	var all uintptr
	for _, n := range flagNames {
		if f&n.flag != 0 {
			all |= n.bind
		}
	}
	return all
}

// Restrict adds flags to the mount at path and to every mount below it; none is
// taken away. The path is a mount point. After an error some mounts may have
// the flags and others not: the tree must not be used.
func Restrict(path string, f Flags) error {
	err := unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW, &unix.MountAttr{Attr_set: f.attributes()})
	if absent(err) {
		return walk(path, f)
	}
	return failure("restrict", path, err)
}

// RestrictOne adds flags to the mount at path alone, for a tree whose parts
// have flags of their own.
func RestrictOne(path string, f Flags) error {
	err := unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, &unix.MountAttr{Attr_set: f.attributes()})
	if !absent(err) {
		return failure("restrict", path, err)
	}
	m, err := top(path)
	if err != nil {
		return err
	}
	return remount(m, f)
}

// maxWalks bounds how often mounts that appear meanwhile are gone after.
const maxWalks = 8

// walk is Restrict for kernels without mount_setattr: mount by mount, until a
// look at the table finds none without the flags.
func walk(path string, f Flags) error {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return failure("restrict", path, err)
	}
	var left []Mount
	for range maxWalks {
		if left, err = lacking(resolved, f); err != nil {
			return err
		}
		if len(left) == 0 {
			return nil
		}
		for _, m := range left {
			if err := remount(m, f); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("mount: restrict %s: %s stays without the flags", path, left[0].Point)
}

// lacking returns the mounts at path and below it without all of the flags.
func lacking(path string, f Flags) ([]Mount, error) {
	all, err := Table()
	if err != nil {
		return nil, err
	}
	var some []Mount
	at := false
	for _, m := range all {
		if !m.under(path) {
			continue
		}
		at = at || m.Point == path
		if m.Flags()&f != f {
			some = append(some, m)
		}
	}
	if !at {
		return nil, failure("restrict", path, errors.New("not a mount point"))
	}
	return some, nil
}

// top returns the uppermost mount at a path.
func top(path string) (Mount, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return Mount{}, failure("find", path, err)
	}
	all, err := Table()
	if err != nil {
		return Mount{}, err
	}
	for _, m := range slices.Backward(all) {
		if m.Point == resolved {
			return m, nil
		}
	}
	return Mount{}, failure("find", path, errors.New("not a mount point"))
}

// remount adds flags to one mount. Flags that it has must be named again: what
// is left out is taken away, or refused in a user namespace.
func remount(m Mount, f Flags) error {
	return failure("restrict", m.Point, unix.Mount("", m.Point, "", unix.MS_REMOUNT|unix.MS_BIND|(f|m.Flags()).bits(), ""))
}
