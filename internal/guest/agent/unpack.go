//go:build linux

package agent

import (
	"errors"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// unpack makes the tree that the host sends. What came before an entry that
// cannot be made stays.
func (s *server) unpack(m *protocol.Message, f protocol.File) {
	in := m.Streams[0].File("unpack")
	defer func() { _ = in.Close() }()
	err := allowed(f.Name, true)
	if err == nil {
		_, err = makeDirs(f.Name)
	}
	if err == nil {
		err = unpackInto(f.Name, protocol.NewRecordReader(in))
	}
	s.reply(m.ID, failure(err))
}

// unpacker makes entries below one directory, and follows no link on the way.
type unpacker struct {
	top int
	in  *protocol.RecordReader

	// The directory of the last entry: the next is often in the same.
	parent     int
	parentName string

	// Directories get their modes at the end: until then they must be open to
	// what is in them.
	dirs []protocol.Info
}

func unpackInto(name string, in *protocol.RecordReader) error {
	top, err := openKind(name, unix.S_IFDIR)
	if err != nil {
		return err
	}
	u := &unpacker{top: int(top.Fd()), in: in, parent: -1}
	defer func() {
		u.leave()
		_ = top.Close()
	}()
	kind, b, err := in.Next()
	for {
		if err != nil {
			return &failed{protocol.ReasonBroken, unix.EPIPE, ""}
		}
		switch kind { //nolint:exhaustive // the others have no place here
		case protocol.RecordEnd:
			return u.close()
		case protocol.RecordFile:
			var i protocol.Info
			if i, err = protocol.DecodeInfo(b); err != nil {
				return &failed{protocol.ReasonBroken, unix.EBADMSG, ""}
			}
			if kind, b, err = u.entry(i); err != nil {
				f := failure(err)
				return &failed{f.Reason, unix.Errno(f.Errno), i.Path}
			}
		default:
			return &failed{protocol.ReasonBroken, unix.EBADMSG, ""}
		}
	}
}

func (u *unpacker) leave() {
	if u.parent >= 0 {
		_ = unix.Close(u.parent)
		u.parent = -1
	}
}

// enter returns the directory that a name is in, making the missing ones.
func (u *unpacker) enter(name string) (dir int, base string, err error) {
	parent, base := path.Split(name)
	parent = strings.TrimSuffix(parent, "/")
	if u.parent >= 0 && u.parentName == parent {
		return u.parent, base, nil
	}
	u.leave()
	at, err := unix.FcntlInt(uintptr(u.top), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, "", err
	}
	for part := range strings.SplitSeq(parent, "/") {
		if part == "" {
			continue
		}
		next, err := step(at, part)
		_ = unix.Close(at)
		if err != nil {
			return -1, "", err
		}
		at = next
	}
	u.parent, u.parentName = at, parent
	return at, base, nil
}

// step goes one directory down, and not through a link.
func step(at int, part string) (int, error) {
	if part == ".." {
		return -1, &failed{protocol.ReasonUnsafe, unix.EINVAL, ""}
	}
	if err := unix.Mkdirat(at, part, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return -1, err
	}
	next, err := openDir(at, part)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return -1, &failed{protocol.ReasonUnsafe, unix.ENOTDIR, ""}
	}
	return next, err
}

// entry makes one entry and returns the record after it.
func (u *unpacker) entry(i protocol.Info) (protocol.RecordKind, []byte, error) {
	var dir int
	var base string
	var err error
	name := path.Clean(i.Path)
	if name != "." {
		if dir, base, err = u.enter(name); err != nil {
			return 0, nil, err
		}
	}
	switch {
	case path.IsAbs(name) || base == "..":
		err = &failed{protocol.ReasonUnsafe, unix.EINVAL, ""}
	case name == ".":
		if i.Mode&unix.S_IFMT != unix.S_IFDIR {
			err = unix.EISDIR
		}
	case i.Hard:
		err = u.hardLink(dir, base, i.Link)
	case i.Mode&unix.S_IFMT == unix.S_IFDIR:
		return u.directory(dir, base, i)
	case i.Mode&unix.S_IFMT == unix.S_IFLNK:
		if err = giveWay(dir, base); err == nil {
			err = unix.Symlinkat(i.Link, dir, base)
		}
		if err == nil && i.Modified != 0 {
			stamp(dir, base, i.Modified)
		}
	case i.Mode&unix.S_IFMT == unix.S_IFIFO:
		err = pipe(dir, base, i)
	case i.Mode&unix.S_IFMT == unix.S_IFREG:
		return u.file(dir, base, i)
	default:
		err = &failed{protocol.ReasonKind, unix.EINVAL, ""}
	}
	if err != nil {
		return 0, nil, err
	}
	return u.in.Next()
}

// giveWay removes what has the name of a new entry, unless it is a directory.
func giveWay(dir int, base string) error {
	err := unix.Unlinkat(dir, base, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// pipe makes a named pipe.
func pipe(dir int, base string, i protocol.Info) error {
	err := giveWay(dir, base)
	if err == nil {
		err = unix.Mknodat(dir, base, unix.S_IFIFO|0o600, 0)
	}
	if err == nil {
		// Not through Mknodat: the umask would count.
		err = unix.Fchmodat(dir, base, i.Mode&0o7777, 0)
	}
	if err == nil && i.Modified != 0 {
		stamp(dir, base, i.Modified)
	}
	return err
}

// directory makes a directory, and returns the record after it.
func (u *unpacker) directory(dir int, base string, i protocol.Info) (protocol.RecordKind, []byte, error) {
	fd, err := makeDirectory(dir, base)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	kind, b, attrs, err := u.attrs()
	if err == nil {
		err = setAttrs(fd, attrs)
	}
	if err == nil {
		err = unix.Fchmod(fd, i.Mode&0o777|0o700)
	}
	if err == nil {
		if len(u.dirs) >= maxEntries {
			return 0, nil, unix.EOVERFLOW
		}
		u.dirs = append(u.dirs, i)
	}
	return kind, b, err
}

func makeDirectory(dir int, base string) (int, error) {
	err := unix.Mkdirat(dir, base, 0o755)
	if errors.Is(err, unix.EEXIST) {
		var st unix.Stat_t
		if err = unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			if err = giveWay(dir, base); err == nil {
				err = unix.Mkdirat(dir, base, 0o755)
			}
		}
	}
	if err != nil {
		return -1, err
	}
	return step(dir, base)
}

// close gives the directories their modes and times, the innermost first. One
// that is not there any more needs none.
func (u *unpacker) close() error {
	for _, i := range slices.Backward(u.dirs) {
		dir, base, err := u.enter(path.Clean(i.Path))
		if err != nil {
			continue
		}
		fd, err := openDir(dir, base)
		if err != nil {
			continue
		}
		err = unix.Fchmod(fd, i.Mode&0o7777)
		_ = unix.Close(fd)
		if err != nil {
			f := failure(err)
			return &failed{f.Reason, unix.Errno(f.Errno), i.Path}
		}
		if i.Modified != 0 {
			stamp(dir, base, i.Modified)
		}
	}
	return nil
}

// hardLink gives a file of this tree a second name.
func (u *unpacker) hardLink(dir int, base, target string) error {
	keep, err := unix.FcntlInt(uintptr(dir), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(keep) }()
	from, name, err := u.enter(path.Clean(target))
	if err != nil {
		return err
	}
	if err := giveWay(keep, base); err != nil {
		return err
	}
	return unix.Linkat(from, name, keep, base, 0)
}

// attrs takes the attributes that follow an entry, and the record after them.
func (u *unpacker) attrs() (kind protocol.RecordKind, b []byte, attrs []protocol.Attr, err error) {
	for left := protocol.MaxAttrs; ; {
		kind, b, err := u.in.Next()
		if err != nil {
			return 0, nil, nil, &failed{protocol.ReasonBroken, unix.EPIPE, ""}
		}
		if kind != protocol.RecordAttr {
			return kind, b, attrs, nil
		}
		a, err := protocol.DecodeAttr(b)
		if left -= len(a.Name) + len(a.Value); err != nil || left < 0 {
			return 0, nil, nil, &failed{protocol.ReasonBroken, unix.EBADMSG, ""}
		}
		attrs = append(attrs, a)
	}
}

// file writes a file whose content follows, and returns the record after that.
func (u *unpacker) file(dir int, base string, i protocol.Info) (protocol.RecordKind, []byte, error) {
	d, err := newDraft(dir)
	if err != nil {
		return 0, nil, err
	}
	defer d.discard()
	kind, b, attrs, err := u.attrs()
	if err != nil {
		return 0, nil, err
	}
	in := &filling{u: u, f: d.file, size: i.Size, kind: kind, b: b}
	if err := in.fill(); err != nil {
		return 0, nil, err
	}
	if err := setAttrs(int(d.file.Fd()), attrs); err != nil {
		return 0, nil, err
	}
	return in.kind, in.b, d.commit(base, i.Mode&0o7777, i.Modified)
}
