package fence

import (
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxTries bounds how often somebody who renames things all the time is put up
// with.
const maxTries = 1000

// longest bounds the path of a file in a tree that is walked: it takes time that
// grows with the square of how deep somebody nests directories.
const longest = 8 << 10

// tooLong is the error of a path beyond that.
func tooLong(op, path string) error {
	return &os.PathError{Op: op, Path: path[:64] + "…", Err: unix.ENAMETOOLONG}
}

// below opens something in a tree that somebody hostile made, and may be changing
// now: no link is followed, and nothing outside is reached.
func below(root int, path string, flags uint64) (int, error) {
	at := root
	for len(path) >= maxPath { // the kernel takes no more in one go
		cut := strings.LastIndexByte(path[:maxPath-1], '/')
		if cut <= 0 {
			break
		}
		next, err := beneath(at, path[:cut], unix.O_PATH|unix.O_DIRECTORY)
		if at != root {
			_ = unix.Close(at)
		}
		if err != nil {
			return -1, err
		}
		at, path = next, path[cut+1:]
	}
	fd, err := beneath(at, path, flags)
	if at != root {
		_ = unix.Close(at)
	}
	return fd, err
}

func beneath(root int, path string, flags uint64) (int, error) {
	for tries := 0; ; tries++ {
		fd, err := unix.Openat2(root, path, &unix.OpenHow{
			Flags:   flags | unix.O_CLOEXEC | unix.O_NOFOLLOW,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
		})
		if err == unix.EINTR || err == unix.EAGAIN && tries < maxTries {
			continue // something was renamed meanwhile
		}
		if err != nil {
			return -1, &os.PathError{Op: "open", Path: path, Err: err}
		}
		return fd, nil
	}
}

// names returns what is in an open directory, sorted.
func names(dir int) ([]string, error) {
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("open", err)
	}
	f := os.NewFile(uintptr(fd), "directory")
	defer func() { _ = f.Close() }()
	list, err := f.Readdirnames(-1)
	slices.Sort(list)
	return list, err
}

// look describes what has a name; ok is false if nothing has.
func look(dir int, name string) (st unix.Stat_t, ok bool, err error) {
	err = unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return st, false, nil
	}
	if err != nil {
		return st, false, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	return st, true, nil
}

func kindOf(st *unix.Stat_t) uint32 { return st.Mode & unix.S_IFMT }

func isDir(st *unix.Stat_t) bool { return kindOf(st) == unix.S_IFDIR }

// isWhiteout reports whether something says that a name of a lower layer is gone.
func isWhiteout(st *unix.Stat_t) bool { return kindOf(st) == unix.S_IFCHR && st.Rdev == 0 }

// notes are the prefixes of what an overlay notes with files, as root and as an
// ordinary user.
const (
	rootNotes = "trusted.overlay."
	userNotes = "user.overlay."
)

func (t Tools) notes() string {
	if t.Become {
		return rootNotes
	}
	return userNotes
}

// isOpaque reports whether a directory of an upper layer hides the one below.
func (t Tools) isOpaque(dir int, name string) (bool, error) {
	fd, err := openDir(dir, name)
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(fd) }()
	value := make([]byte, 2)
	n, err := unix.Fgetxattr(fd, t.notes()+"opaque", value)
	return err == nil && n == 1 && value[0] == 'y', nil
}

// maxAttributes bounds what a file has of extended attributes, by name and by
// value; the kernel does so, too.
const maxAttributes = 64 << 10

// attribute is one extended attribute of a file.
type attribute struct{ name, value string }

// attributes returns those of a file that its owner made, and listed all names.
func attributes(fd int) (own []attribute, listed []string, err error) {
	n, err := unix.Flistxattr(fd, nil)
	if n == 0 || errors.Is(err, unix.ENOTSUP) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, os.NewSyscallError("flistxattr", err)
	}
	list := make([]byte, maxAttributes)
	if n, err = unix.Flistxattr(fd, list); err != nil {
		return nil, nil, os.NewSyscallError("flistxattr", err)
	}
	value := make([]byte, maxAttributes)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list[:n]), "\x00"), "\x00") {
		listed = append(listed, name)
		if !strings.HasPrefix(name, "user.") {
			continue
		}
		n, err := unix.Fgetxattr(fd, name, value)
		if errors.Is(err, unix.ENODATA) {
			continue // it went
		}
		if err != nil {
			return nil, nil, os.NewSyscallError("fgetxattr", err)
		}
		own = append(own, attribute{name, string(value[:n])})
	}
	return own, listed, nil
}

// likeness gives an open file the mode, the times and the attributes of another.
func likeness(from, to, owner int, become bool) error {
	var st unix.Stat_t
	if err := unix.Fstat(from, &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	want, _, err := attributes(from)
	if err != nil {
		return err
	}
	have, _, err := attributes(to)
	if err != nil {
		return err
	}
	for _, a := range have {
		if !slices.Contains(want, a) {
			if err := unix.Fremovexattr(to, a.name); err != nil {
				return os.NewSyscallError("fremovexattr", err)
			}
		}
	}
	for _, a := range want {
		if strings.HasPrefix(a.name, userNotes) && !become || slices.Contains(have, a) {
			continue // what an overlay noted is true in one layer only
		}
		if err := unix.Fsetxattr(to, a.name, []byte(a.value), 0); err != nil {
			return os.NewSyscallError("fsetxattr", err)
		}
	}
	if become {
		if err := unix.Fchown(to, owner, owner); err != nil {
			return os.NewSyscallError("fchown", err)
		}
	}
	if err := unix.Fchmod(to, st.Mode&0o7777); err != nil {
		return os.NewSyscallError("fchmod", err)
	}
	return setTimes(to, "", &st)
}

// setTimes gives a file the times of another, by its descriptor or by a name in
// a directory.
func setTimes(fd int, name string, st *unix.Stat_t) error {
	ts := []unix.Timespec{st.Atim, st.Mtim}
	flags := unix.AT_SYMLINK_NOFOLLOW
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	if err := unix.UtimesNanoAt(fd, name, ts, flags); err != nil {
		return os.NewSyscallError("utimensat", err)
	}
	return nil
}
