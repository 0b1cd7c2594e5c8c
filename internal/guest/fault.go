//go:build linux

package guest

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// lost is the error of every call to an agent that is gone.
func lost(cause error) error {
	return cove.Wrap(cove.Unavailable, cause, "the sandbox's agent is gone and its programs with it; open the sandbox anew")
}

// errnoOf is the cause behind a reply, for the log.
func errnoOf(r protocol.Reply) error {
	if r.Errno == 0 {
		return errors.New("reason " + fmt.Sprint(r.Reason))
	}
	return syscall.Errno(r.Errno)
}

// printable shortens what an agent says: it may be anything.
func printable(text string) string { return strings.Trim(fmt.Sprintf("%.300q", text), `"`) }

// fault turns a reply about a name into an error; nil if it was done.
func fault(r protocol.Reply, name string) error {
	if r.OK() {
		return nil
	}
	shown := fmt.Sprintf("%.200q", name)
	cause := errnoOf(r)
	switch r.Reason {
	case protocol.ReasonNone:
		return errnoFault(syscall.Errno(r.Errno), shown)
	case protocol.ReasonKind:
		return cove.Wrap(cove.Invalid, cause, "%s is not of the right kind for this: files are read and written, directories are listed and archived", shown)
	case protocol.ReasonUnsafe:
		return cove.Wrap(cove.Invalid, cause, "archive: the way to %s leads through a link or a file", printable(r.Text))
	case protocol.ReasonBroken:
		return cove.Wrap(cove.Unavailable, cause, "%s: the stream to the sandbox broke; try again", shown)
	case protocol.ReasonNoEntry:
		return cove.Wrap(cove.NotFound, cause, "the program has ended")
	case protocol.ReasonBusy:
		return cove.Wrap(cove.Exhausted, cause, "the sandbox does too much at once; wait until something is done")
	case protocol.ReasonNoTTY:
		return cove.Wrap(cove.Unsupported, cause, "the program has no terminal")
	case protocol.ReasonDir:
		return cove.Wrap(cove.Invalid, cause, "workdir: %s is not a directory that can be entered", shown).With("field", "workdir")
	case protocol.ReasonKernelFiles:
		return cove.Wrap(cove.Denied, cause, "%s leads into a file system of the kernel, such as /proc or /sys, which calls on files do not enter", shown).
			Remedy("use a program in the sandbox, such as cat")
	case protocol.ReasonExec, protocol.ReasonUnknown:
	}
	return cove.Wrap(cove.Internal, cause, "the sandbox's agent does not understand this host")
}

// errnoFault maps what the kernel said about a file.
func errnoFault(errno syscall.Errno, shown string) error {
	switch errno { //nolint:exhaustive // the others are nobody's fault
	case syscall.ENOENT:
		return cove.Wrap(cove.NotFound, errno, "%s does not exist", shown)
	case syscall.ENOTDIR:
		return cove.Wrap(cove.Invalid, errno, "%s: a part of the path is a file; name something below a directory", shown)
	case syscall.ENOSPC, syscall.EDQUOT:
		return cove.Wrap(cove.Exhausted, errno, "%s: the workspace is full; remove files or open a session with a larger workspace", shown).
			Reason(cove.ReasonWorkspaceFull)
	case syscall.EFBIG:
		return cove.Wrap(cove.Invalid, errno, "%s is larger than one file may be", shown).Reason(cove.ReasonFileTooLarge)
	case syscall.EISDIR:
		return cove.Wrap(cove.Invalid, errno, "%s is a directory; name a file", shown)
	case syscall.EEXIST, syscall.ENOTEMPTY:
		return cove.Wrap(cove.Conflict, errno, "%s exists already; remove it first or choose another name", shown)
	case syscall.EACCES, syscall.EPERM, syscall.EROFS:
		return cove.Wrap(cove.Denied, errno, "%s may not be touched by the sandbox's user", shown)
	case syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EINVAL, syscall.EXDEV, syscall.EBUSY, syscall.ENXIO, syscall.ETXTBSY, syscall.EOVERFLOW, syscall.EMLINK, syscall.ENODEV, syscall.EOPNOTSUPP, syscall.E2BIG:
		return cove.Wrap(cove.Invalid, errno, "%s cannot be used for this: %s", shown, errno.Error())
	case syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE:
		return cove.Wrap(cove.Exhausted, errno, "the sandbox has no room for one more: %s; end programs or open a larger one", errno.Error())
	}
	return cove.Wrap(cove.Internal, errno, "the sandbox cannot do this; the log has the cause")
}

// excess is why an agent ends its sandbox. Where it stands for the end of a connection,
// calls fail with it and so do programs.
func excess(m *protocol.Message) error {
	closeAll(m.Streams)
	x, err := protocol.DecodeExcess(m.Body)
	if err != nil {
		return err
	}
	return TooMuch(x.Kind == protocol.Sockets, x.Count, x.Most)
}

// TooMuch is the error of a sandbox that was ended because its programs had the kernel
// keep too many locks, or connections, which no control group is charged for.
func TooMuch(sockets bool, count, most uint64) error {
	what := "file locks"
	if sockets {
		what = "connections and UDP sockets in its own network"
	}
	return cove.Errorf(cove.NotFound, "the sandbox was ended: it held %d %s, and the most is %d", count, what, most).
		Reason(cove.ReasonKernelMemory).Remedy("open a new one; its files are gone unless they were kept")
}
