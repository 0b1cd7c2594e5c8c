package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// control opens a control file without what waits for files: the kernel answers for
// these at once.
func control(dir, file string, flags int) (int, error) {
	path := filepath.Join(dir, file)
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		if err == nil {
			return fd, nil
		}
		if !errors.Is(err, unix.EINTR) {
			return -1, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// read returns the text of a control file, without the newline at its end.
func read(dir, file string) (string, error) {
	fd, err := control(dir, file, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(fd) }()
	var text []byte
	for part := make([]byte, 4096); ; {
		n, err := unix.Read(fd, part)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return "", &os.PathError{Op: "read", Path: filepath.Join(dir, file), Err: err}
		case n == 0:
			return strings.TrimSuffix(string(text), "\n"), nil
		default:
			text = append(text, part[:n]...)
		}
	}
}

// readInt returns the number in a control file.
func readInt(dir, file string) (int64, error) {
	text, err := read(dir, file)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, &os.PathError{Op: "parse", Path: filepath.Join(dir, file), Err: err}
	}
	return n, nil
}

// readKey returns the number behind a key in a file of lines "key number".
func readKey(dir, file, key string) (int64, error) {
	text, err := read(dir, file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), " "); ok && k == key {
			return strconv.ParseInt(v, 10, 64)
		}
	}
	return 0, &os.PathError{Op: "find " + key + " in", Path: filepath.Join(dir, file), Err: os.ErrNotExist}
}

// write puts a value into a control file, in one write, which is what the
// kernel wants. It makes no file.
func write(dir, file, value string) error {
	fd, err := control(dir, file, unix.O_WRONLY|unix.O_TRUNC)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	for {
		_, err := unix.Write(fd, []byte(value))
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return &os.PathError{Op: "write", Path: filepath.Join(dir, file), Err: err}
		}
	}
}

// remove takes the directory of a group away; os.Remove would try it as a file
// first.
func remove(dir string) error {
	for {
		err := unix.Rmdir(dir)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return &os.PathError{Op: "remove", Path: dir, Err: err}
		}
	}
}

// busy says that a group still has processes or groups in it.
func busy(err error) bool { return errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTEMPTY) }

// gone says that a group, or a process on the way into it, is no more.
func gone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ESRCH)
}
