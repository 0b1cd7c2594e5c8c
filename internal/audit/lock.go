package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/flock"
)

const lockName = "lock"

// holderLen is the length of the number of a process in the file.
const holderLen = 20

// takeLock makes this process the one that writes. The kernel gives the lock
// back when the process ends, however it ends.
func takeLock(root *os.Root, dir string) (*os.File, error) {
	f, err := root.OpenFile(lockName, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	ok, err := flock.Try(f, flock.Exclusive)
	if !ok && err == nil {
		holder := make([]byte, holderLen)
		n, _ := f.ReadAt(holder, 0)
		_ = f.Close()
		pid := string(bytes.TrimSpace(holder[:n]))
		return nil, cove.Errorf(cove.Conflict, "the journal at %s is in use by process %s", dir, pid).
			With("pid", pid).Remedy("stop process %s first, or use another home", pid)
	}
	if err == nil {
		// Always as long: a file that is cut off is brought to the disk when it is
		// closed, and what was cut off goes into the next sync.
		_, err = f.WriteAt(fmt.Appendf(nil, "%-*d", holderLen, os.Getpid()), 0)
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
	ok, err := flock.Try(f, flock.Shared)
	return !ok && err == nil
}
