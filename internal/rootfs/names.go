package rootfs

import (
	"errors"
	"syscall"
)

// isNameError reports whether a name itself is what the system does not take.
func isNameError(err error) bool {
	return errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EILSEQ)
}
