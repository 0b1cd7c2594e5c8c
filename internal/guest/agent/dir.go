//go:build linux

package agent

import (
	"cmp"
	"errors"

	"golang.org/x/sys/unix"
)

// openDir opens a directory, not through a link and not one of the kernel. Whether it is one is looked at
// afterwards: told that it must be, gVisor follows a link all the same.
func openDir(at int, name string) (int, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENXIO) {
		return -1, unix.ENOTDIR // a socket
	}
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err = cmp.Or(ordinary(fd), unix.Fstat(fd, &st)); err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = unix.ENOTDIR
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
