package fence

import (
	"errors"
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// trashed numbers what waits to be erased.
var trashed atomic.Uint64

// erase removes a tree at the top of a store, which nobody else can reach any
// more. However deep it is, two directories are open at a time: those in it are
// moved to the top first.
func erase(store int, name string) error {
	left := []string{name}
	for len(left) > 0 {
		next := left[len(left)-1]
		err := unix.Unlinkat(store, next, unix.AT_REMOVEDIR)
		if errors.Is(err, unix.ENOTDIR) {
			err = unix.Unlinkat(store, next, 0)
		}
		if err == nil || errors.Is(err, unix.ENOENT) {
			left = left[:len(left)-1]
			continue
		}
		if !errors.Is(err, unix.ENOTEMPTY) {
			return &os.PathError{Op: "erase", Path: next, Err: err}
		}
		found, err := empty(store, next)
		if err != nil {
			return err
		}
		left = append(left, found...)
	}
	return nil
}

// empty removes the files of a directory and moves its directories to the top.
func empty(store int, name string) (moved []string, err error) {
	dir, err := openDir(store, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(dir) }()
	list, err := names(dir)
	if err != nil {
		return nil, err
	}
	for _, n := range list {
		err := unix.Unlinkat(dir, n, 0)
		if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
			var to string
			if to, err = trash(store, dir, n); err == nil {
				moved = append(moved, to)
			}
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return nil, &os.PathError{Op: "erase", Path: n, Err: err}
		}
	}
	return moved, nil
}

// trash moves something to the top of its store, to be erased.
func trash(store, dir int, name string) (string, error) {
	to := "trash." + strconv.FormatUint(trashed.Add(1), 36) + "." + strconv.Itoa(os.Getpid())
	return to, unix.Renameat(dir, name, store, to)
}

// eraseWork removes what an overlay needed beside an upper layer: as a rule an empty
// directory in another.
func eraseWork(store int, upper string) error {
	name := WorkOf(upper)
	_ = unix.Unlinkat(store, name+"/work", unix.AT_REMOVEDIR)
	return erase(store, name)
}
