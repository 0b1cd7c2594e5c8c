package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// read returns the text of a control file, without the newline at its end.
func read(dir, file string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, file)) //nolint:gosec // directories that we chose
	return strings.TrimSuffix(string(text), "\n"), err
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
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY|os.O_TRUNC, 0) //nolint:gosec // directories that we chose
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// busy says that a group still has processes or groups in it.
func busy(err error) bool { return errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTEMPTY) }

// gone says that a group, or a process on the way into it, is no more.
func gone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ESRCH)
}
