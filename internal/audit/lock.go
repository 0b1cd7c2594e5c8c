package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/cove-sandbox/cove"
)

const lockName = "lock"

// takeLock makes this process the one that writes. The kernel gives the lock
// back when the process ends, however it ends.
func takeLock(root *os.Root, dir string) (*os.File, error) {
	f, err := root.OpenFile(lockName, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder := make([]byte, 20)
		n, _ := f.ReadAt(holder, 0)
		_ = f.Close()
		pid := string(bytes.TrimSpace(holder[:n]))
		return nil, cove.Errorf(cove.Conflict, "the journal at %s is in use by process %s", dir, pid).
			With("pid", pid).Remedy("stop process %s first, or use another home", pid)
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock: %w", err), f.Close())
	}
	return f, nil
}

// locked reports whether some process writes the journal now. It holds the lock
// for a moment itself, so it is asked only where the answer matters.
func locked(root *os.Root) bool {
	f, err := root.Open(lockName)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	return errors.Is(flock(f, syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
