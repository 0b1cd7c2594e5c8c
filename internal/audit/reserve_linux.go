package audit

import (
	"errors"
	"math"
	"os"
	"syscall"

	"github.com/cove-sandbox/cove"
)

// keepSize is FALLOC_FL_KEEP_SIZE: the file stays as long as it is, and the blocks
// behind its end are its own.
const keepSize = 1

func preallocate(f *os.File, from, to int64) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var ferr error
	if err := raw.Control(func(fd uintptr) {
		for ferr = syscall.EINTR; errors.Is(ferr, syscall.EINTR); {
			ferr = syscall.Fallocate(int(fd), keepSize, from, to-from)
		}
	}); err != nil {
		return err
	}
	return os.NewSyscallError("fallocate", ferr)
}

// freeBytes is what users may still write to the file system of a directory.
func freeBytes(dir string) (cove.Bytes, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, err
	}
	if st.Blocks == 0 { // it does not count
		return math.MaxInt64, nil
	}
	return cove.Bytes(st.Bavail) * cove.Bytes(st.Bsize), nil //nolint:gosec // sizes of disks
}
