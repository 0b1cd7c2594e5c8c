package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// keepSize is FALLOC_FL_KEEP_SIZE: the file stays as long as it is.
const keepSize = 1

func preallocate(f *os.File, from, length int64) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var ferr error
	err = raw.Control(func(fd uintptr) {
		for ferr = syscall.EINTR; errors.Is(ferr, syscall.EINTR); {
			ferr = syscall.Fallocate(int(fd), keepSize, from, length)
		}
	})
	return errors.Join(err, ferr)
}
