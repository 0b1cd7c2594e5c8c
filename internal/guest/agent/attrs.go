//go:build linux

package agent

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// attrPrefix begins the attributes that are users' own.
const attrPrefix = "user."

// writeAttrs writes the attributes of a file.
func writeAttrs(w *protocol.RecordWriter, f *os.File) error {
	fd := int(f.Fd())
	n, err := unix.Flistxattr(fd, nil)
	if n <= 0 || err != nil {
		return noAttrs(err)
	}
	list := make([]byte, n)
	if n, err = unix.Flistxattr(fd, list); err != nil {
		return noAttrs(err)
	}
	total := 0
	value := make([]byte, protocol.MaxAttr)
	for name := range strings.SplitSeq(string(list[:n]), "\x00") {
		if !strings.HasPrefix(name, attrPrefix) {
			continue
		}
		n, err := unix.Fgetxattr(fd, name, value)
		if errors.Is(err, unix.ENODATA) {
			continue // it went while we looked
		}
		if total += len(name) + n; errors.Is(err, unix.ERANGE) || total > protocol.MaxAttrs {
			err = unix.E2BIG
		}
		if err != nil {
			return &os.PathError{Op: "getxattr", Path: f.Name(), Err: err}
		}
		if err := w.Write(protocol.RecordAttr, protocol.Attr{Name: name, Value: string(value[:n])}.Encode()); err != nil {
			return err
		}
	}
	return nil
}

// noAttrs forgives a file system that has none.
func noAttrs(err error) error {
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}

// setAttrs gives a file its attributes. They are the user's own, or none.
func setAttrs(fd int, attrs []protocol.Attr) error {
	for _, a := range attrs {
		if !strings.HasPrefix(a.Name, attrPrefix) {
			return unix.EPERM
		}
		if err := unix.Fsetxattr(fd, a.Name, []byte(a.Value), 0); err != nil {
			return err
		}
	}
	return nil
}
