//go:build !lean

package daemon

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"github.com/cove-sandbox/cove"
)

// maxLog bounds daemon.log; the part before stays as daemon.log.1.
const maxLog = 8 * int64(cove.MiB)

// Log is the log of a server that nobody watches: daemon.log in COVE_HOME, of
// bounded length. It is safe for concurrent use.
type Log struct {
	path string

	mu   sync.Mutex
	file *os.File // guarded by mu
	size int64    // guarded by mu
}

// OpenLog opens the log of a COVE_HOME to append to it.
func OpenLog(home string) (*Log, error) {
	l := &Log{path: Home{dir: home}.Log()}
	if err := l.open(); err != nil {
		return nil, homeError(home, err)
	}
	return l, nil
}

func openAppend(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600) //nolint:gosec // a name of ours in COVE_HOME
}

func (l *Log) open() error {
	f, err := openAppend(l.path)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.size = f, info.Size()
	return nil
}

// Write appends p and starts a new file where this one has become too long.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(p)) > maxLog {
		if err := l.rotate(); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	return n, err
}

// rotateLong begins a new log where the old one is long, so that what comes
// next is found in one file.
func rotateLong(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || info.Size() < maxLog/2 {
		return err
	}
	return os.Rename(path, path+".1")
}

func (l *Log) rotate() error {
	if err := os.Rename(l.path, l.path+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	old := l.file
	if err := l.open(); err != nil {
		return err
	}
	// What the runtime itself writes, when we crash, goes to descriptor 2.
	if sameFile(old, os.Stderr) {
		if err := syscall.Dup3(int(l.file.Fd()), int(os.Stderr.Fd()), 0); err != nil {
			return errors.Join(err, old.Close())
		}
	}
	return old.Close()
}

func sameFile(a, b *os.File) bool {
	x, err := a.Stat()
	if err != nil {
		return false
	}
	y, err := b.Stat()
	return err == nil && os.SameFile(x, y)
}

// Close closes the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}
