package rootfs

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/cove-sandbox/cove"
)

// fault turns what the operating system said into an error that says what to do.
// What already is one stays.
func fault(err error, what string) error {
	if _, ours := errors.AsType[*cove.Error](err); ours || err == nil {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if code, words, ok := cove.DiskFault(err); ok {
		return cove.Wrap(code, err, "%s: %s", what, words)
	}
	words := "the log has the cause"
	switch {
	case errors.Is(err, fs.ErrPermission):
		words = "permission denied; let the user that runs cove read and write there"
	case errors.Is(err, fs.ErrNotExist):
		words = "it does not exist"
	case errors.Is(err, syscall.ENOTDIR):
		words = "it is not a directory"
	}
	return cove.Wrap(cove.Unavailable, err, "%s: %s", what, words)
}
