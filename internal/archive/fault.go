package archive

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/cove-sandbox/cove"
)

// fault turns what the operating system said into an error that names the
// directory and says what to do about it.
func fault(dir string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return cove.Wrap(cove.CodeOf(err), err, "%s", cove.MessageOf(err))
	}
	if code, words, ok := cove.DiskFault(err); ok {
		return cove.Wrap(code, err, "%s: %s", dir, words)
	}
	words := "the directory cannot be used; the log has the cause"
	switch {
	case errors.Is(err, fs.ErrPermission):
		words = "the directory belongs to somebody else; make it readable and writable for the user that runs cove"
	case errors.Is(err, fs.ErrNotExist):
		words = "the directory does not exist; make it or the one above it first"
	case errors.Is(err, syscall.ENOTDIR):
		words = "it is not a directory; choose another path"
	case errors.Is(err, fs.ErrClosed):
		words = "the archives are closed"
	}
	return cove.Wrap(cove.Unavailable, err, "%s: %s", dir, words)
}
