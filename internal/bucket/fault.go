package bucket

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/cove-sandbox/cove"
)

// fault turns what the operating system said into an error that names the
// folder and says what to do about it. One that is ready stays as it is.
func fault(dir string, err error) error {
	if _, ok := errors.AsType[*cove.Error](err); ok || err == nil {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return cove.Wrap(cove.CodeOf(err), err, "%s", cove.MessageOf(err))
	}
	if code, words, ok := cove.DiskFault(err); ok {
		return cove.Wrap(code, err, "%s: %s", dir, words)
	}
	words := "the folder cannot be used; the log has the cause"
	switch {
	case errors.Is(err, fs.ErrPermission):
		words = "the folder belongs to somebody else; make it readable and writable for the user that runs cove"
	case errors.Is(err, fs.ErrNotExist):
		words = "the folder does not exist; make it or the one above it first"
	case errors.Is(err, syscall.ENOTDIR):
		words = "it is not a folder; choose another path"
	case errors.Is(err, syscall.ESTALE):
		words = "the file server has lost the folder; mount it again"
	case errors.Is(err, fs.ErrClosed):
		words = "the archives are closed"
	}
	return cove.Wrap(cove.Unavailable, err, "%s: %s", dir, words)
}
