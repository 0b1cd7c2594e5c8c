package fake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/cove-sandbox/cove"
)

// errDead is what a simulated process gets from every call after its end. Its
// goroutine then unwinds; the result was decided by whoever ended it.
var errDead = errors.New("the process has ended")

// errKernelFiles is the error of a path into what would be /proc or /sys.
var errKernelFiles = fmt.Errorf("a file system of the kernel: %w", syscall.EACCES)

// wording is how coreutils word an error after the name of a file.
func wording(err error) string {
	text := err.Error()
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		text = errno.Error()
	}
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// fileError turns an error of the tree into one that a caller of Files gets.
func fileError(name string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*cove.Error](err); ok {
		return err
	}
	shown := fmt.Sprintf("%.200q", name)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, errKernelFiles):
		return cove.Wrap(cove.Denied, err, "%s leads into a file system of the kernel, such as /proc or /sys, which calls on files do not enter", shown).
			Remedy("use a program in the sandbox, such as cat")
	case errors.Is(err, syscall.ENOTDIR):
		return cove.Wrap(cove.Invalid, err, "%s: a part of the path is a file; name something below a directory", shown)
	case errors.Is(err, fs.ErrNotExist):
		return cove.Wrap(cove.NotFound, err, "%s does not exist", shown)
	case errors.Is(err, syscall.ENOSPC):
		return cove.Wrap(cove.Exhausted, err, "%s: the workspace is full; remove files or open a session with a larger workspace", shown).
			Reason(cove.ReasonWorkspaceFull)
	case errors.Is(err, syscall.EISDIR):
		return cove.Wrap(cove.Invalid, err, "%s is a directory; name a file", shown)
	case errors.Is(err, syscall.ENOTEMPTY), errors.Is(err, fs.ErrExist):
		return cove.Wrap(cove.Conflict, err, "%s exists already; remove it first or choose another name", shown)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return cove.Wrap(cove.Denied, err, "%s may not be touched by the sandbox's user", shown)
	}
	for _, bad := range []error{syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EINVAL, syscall.EXDEV, syscall.EBUSY} {
		if errors.Is(err, bad) {
			return cove.Wrap(cove.Invalid, err, "%s cannot be used for this: %s", shown, strings.ToLower(wording(err)))
		}
	}
	return cove.Wrap(cove.Internal, err, "the files of the sandbox cannot be reached; the log has the cause")
}

// after returns err, and with it what went wrong while cleaning up after it.
func after(err, cleanup error) error {
	if cleanup == nil {
		return err
	}
	return errors.Join(err, cleanup)
}
