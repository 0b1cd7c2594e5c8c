package cove

import (
	"errors"
	"syscall"
)

// DiskFault returns the code and the words for what a disk itself refuses: it is
// full, read-only or damaged. ok is false for every other error.
func DiskFault(err error) (code Code, words string, ok bool) {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return Exhausted, "the disk is full; free some space and try again", true
	case errors.Is(err, syscall.EROFS):
		return Unavailable, "the disk is read-only; make it writable", true
	case errors.Is(err, syscall.EIO):
		return Unavailable, "the disk gave an error; check that it is healthy", true
	}
	return "", "", false
}
