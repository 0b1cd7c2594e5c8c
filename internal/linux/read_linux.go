package linux

import (
	"bytes"
	"os"

	"golang.org/x/sys/unix"
)

// ReadSmall returns a file of the kernel's that fits into a page; of a longer one
// the beginning. An os.File, which could also wait, would take three times as many
// calls.
func ReadSmall(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	var page [4096]byte
	n, err := unix.Read(fd, page[:])
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: path, Err: err}
	}
	return bytes.Clone(page[:n]), nil
}
