//go:build linux

package agent

import (
	"errors"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// maxFollowed bounds the links on the way to one file, as the kernel does.
const maxFollowed = 40

// resolved is an open directory and the name in it that a path leads to.
type resolved struct {
	dir  int
	base string // "." for the directory itself
	real string // the path of the directory, without links
}

// resolve finds what an absolute path leads to, with the last part followed or not.
// The path must not enter a file system of the kernel: what is in /proc/self is about
// the process that looks at it, which is the agent. The links of /proc, which lead to
// other file systems, are therefore never followed.
func resolve(name string, follow bool) (resolved, error) {
	r := resolved{dir: -1}
	if err := r.enter(unix.AT_FDCWD, "/"); err != nil {
		return r, err
	}
	rest := strings.Split(name, "/")
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		isLast := len(rest) == 0
		if part == "" || part == "." {
			continue
		}
		if part != ".." && (follow || !isLast) {
			if target, ok := linkAt(r.dir, part); ok {
				if links++; links > maxFollowed {
					return r, r.fail(unix.ELOOP)
				}
				if err := r.from(target); err != nil {
					return r, r.fail(err)
				}
				rest = append(strings.Split(target, "/"), rest...)
				continue
			}
		}
		if isLast && part != ".." {
			r.base = part
			return r, nil
		}
		if err := r.enter(r.dir, part); err != nil {
			return r, r.fail(err)
		}
	}
	return r, nil
}

// enter makes a directory the current one.
func (r *resolved) enter(at int, part string) error {
	fd, err := unix.Openat(at, part, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := ordinary(fd); err != nil {
		_ = unix.Close(fd)
		return err
	}
	r.close()
	*r = resolved{dir: fd, base: ".", real: path.Join(r.real, part)}
	if path.IsAbs(part) {
		r.real = part
	}
	return nil
}

// from goes to where the target of a link begins.
func (r *resolved) from(target string) error {
	if !path.IsAbs(target) {
		return nil
	}
	return r.enter(unix.AT_FDCWD, "/")
}

func (r *resolved) fail(err error) error {
	r.close()
	return err
}

func (r *resolved) close() {
	if r.dir >= 0 {
		_ = unix.Close(r.dir)
		r.dir = -1
	}
}

// linkAt returns what a link leads to.
func linkAt(dir int, name string) (target string, ok bool) {
	buf := make([]byte, protocol.MaxPath)
	n, err := unix.Readlinkat(dir, name, buf)
	return string(buf[:max(n, 0)]), err == nil
}

// allowed reports a path that enters a file system of the kernel, for calls that work
// with paths and show nothing of what is there.
func allowed(name string, follow bool) error {
	r, err := resolve(name, follow)
	if err == nil {
		r.close()
	}
	if errors.Is(err, errKernelFiles) {
		return err
	}
	return nil
}

var errKernelFiles = &failed{protocol.ReasonKernelFiles, unix.EACCES, ""}

// ordinary refuses what is open where it is in a file system of the kernel.
func ordinary(fd int) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return err
	}
	switch uint32(st.Type) { //nolint:gosec // of 32 bits on every machine
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC,
		unix.SECURITYFS_MAGIC, unix.BPF_FS_MAGIC, unix.NSFS_MAGIC, unix.PSTOREFS_MAGIC, unix.EFIVARFS_MAGIC, unix.SELINUX_MAGIC, unix.BINFMTFS_MAGIC:
		return errKernelFiles
	}
	return nil
}
