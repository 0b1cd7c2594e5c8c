//go:build linux

package agent

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/linux/seccomp"
)

// attrPrefix begins the attributes that are users' own.
const attrPrefix = "user."

// The agent is under the filter of the sandbox, which refuses values of a length that an
// access control list can have. Such a value is stored with a NUL at its end, whatever
// the sandbox, and read without it; a program sees the NUL.

// padded is a value as it is stored.
func padded(value string) []byte {
	b := []byte(value)
	if seccomp.ListLength(len(b)) {
		b = append(b, 0)
	}
	return b
}

// plain is a stored value as it was given.
func plain(b []byte) string {
	if n := len(b) - 1; n >= 0 && b[n] == 0 && seccomp.ListLength(n) {
		b = b[:n]
	}
	return string(b)
}

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
		if err := w.Write(protocol.RecordAttr, protocol.Attr{Name: name, Value: plain(value[:n])}.Encode()); err != nil {
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
		if err := unix.Fsetxattr(fd, a.Name, padded(a.Value), 0); err != nil {
			return err
		}
	}
	return nil
}

// ownAttrs returns the attributes of a file that a description has room for. Only
// files and directories have some, and what cannot be read is not there.
func ownAttrs(name string, mode uint32) []protocol.Attr {
	if kind := mode & unix.S_IFMT; kind != unix.S_IFREG && kind != unix.S_IFDIR {
		return nil
	}
	n, err := unix.Llistxattr(name, nil)
	if n <= 0 || err != nil {
		return nil
	}
	list := make([]byte, n)
	if n, err = unix.Llistxattr(name, list); err != nil {
		return nil
	}
	var attrs []protocol.Attr
	total := 0
	value := make([]byte, protocol.MaxTag)
	for attr := range strings.SplitSeq(string(list[:n]), "\x00") {
		if !strings.HasPrefix(attr, attrPrefix) {
			continue
		}
		n, err := unix.Lgetxattr(name, attr, value)
		if err != nil || total+len(attr)+n > protocol.MaxTagBytes {
			continue
		}
		total += len(attr) + n
		if attrs = append(attrs, protocol.Attr{Name: attr, Value: plain(value[:n])}); len(attrs) == protocol.MaxTags {
			break
		}
	}
	return attrs
}

// tag gives a file attributes.
func (s *server) tag(m *protocol.Message) {
	t, err := protocol.DecodeTag(m.Body)
	if err != nil || len(m.Streams) != 0 {
		s.malformed(m)
		return
	}
	if err = allowed(t.Name, true); err != nil {
		s.reply(m.ID, failure(err))
		return
	}
	for _, a := range t.Attrs {
		if err = unix.EPERM; strings.HasPrefix(a.Name, attrPrefix) {
			err = unix.Setxattr(t.Name, a.Name, padded(a.Value), 0)
		}
		if err != nil {
			break
		}
	}
	s.reply(m.ID, failure(err))
}
