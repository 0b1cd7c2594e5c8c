package userns

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// Leases hands out users of the host, two for each sandbox, so that two sandboxes
// share no user even where something else between them fails. Only root needs it.
// Methods are safe for concurrent use, and so are several processes with one directory.
//
// A lease is a lock with flock(2) on a file of its own, and not of bytes of one file:
// the kernel shows locks of open file descriptions to every sandbox, and those of flock
// only where their process is seen. It ends when the last descriptor of it is closed,
// wherever that is: a process that keeps a sandbox alive beyond this one holds
// [Lease.File] open. Files stay, since two processes could else lock two files of one
// name.
type Leases struct {
	dir          string
	first, slots uint32
	turn         uint32 // of slots that are handed out before others

	mu   sync.Mutex
	next uint32 // guarded by mu; the slot to try first
}

// LeaseConfig says which users there are to hand out.
type LeaseConfig struct {
	Dir   string // of a file for each lease; it must be there, and be root's
	First uint32 // 0 means 200000
	Count uint32 // of all users; 0 means 100000
}

const (
	perLease = 2
	// inTurn is how many leases are handed out in turn, so that users are not used again
	// at once; more are made only while all of these are taken, for the sake of few files.
	inTurn = 4096
)

// OpenLeases checks the range; files are opened by each lease.
func OpenLeases(cfg LeaseConfig) (*Leases, error) {
	first, count := cmp.Or(cfg.First, 200_000), cmp.Or(cfg.Count, 100_000)
	const reserved = 65_536 // the host's own users
	if first < reserved || uint64(first)+uint64(count) > 1<<32-1 || count < perLease {
		return nil, fmt.Errorf("users for sandboxes: %d from %d on, %d each, is no good range; start at %d or above", count, first, perLease, reserved)
	}
	l := &Leases{dir: cfg.Dir, first: first, slots: count / perLease}
	l.turn = min(l.slots, inTurn)
	// Processes that start together do not try the same slots.
	l.next = uint32(os.Getpid()) % l.turn //nolint:gosec // any number will do
	return l, nil
}

// ErrNoUsers says that all users are leased.
var ErrNoUsers = errors.New("all users for sandboxes are taken")

// Lease is two users that no other sandbox has: First and the one after it. Release it once.
type Lease struct {
	First uint32
	file  *os.File
}

// Take returns users that no lease holds, in this process or another.
func (l *Leases) Take() (*Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for slot := range l.slots {
		if slot < l.turn {
			slot = l.next
			l.next = (l.next + 1) % l.turn
		}
		first := l.first + slot*perLease
		f, err := l.lock(first)
		if err != nil {
			return nil, fmt.Errorf("users for sandboxes: %w", err)
		}
		if f != nil {
			return &Lease{First: first, file: f}, nil
		}
	}
	return nil, ErrNoUsers
}

// lock returns the file of a lease, locked, or nil where another has it. The file can
// only be read, and is empty: its holder may be a sandbox.
func (l *Leases) lock(first uint32) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(l.dir, strconv.FormatUint(uint64(first), 10)), os.O_RDONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	var locked error
	err = conn.Control(func(fd uintptr) { locked = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB) })
	if err == nil && locked == nil {
		return f, nil
	}
	if errors.Is(locked, unix.EWOULDBLOCK) {
		locked = nil
	}
	return nil, errors.Join(err, locked, f.Close())
}

// Adopt returns a lease that another process took and passed on by its file,
// which it takes over.
func (l *Leases) Adopt(first uint32, f *os.File) *Lease {
	return &Lease{First: first, file: f}
}

// File is what holds the lease; another process that has it, too, holds it with
// us.
func (l *Lease) File() *os.File { return l.file }

// Release gives the users back, unless another process holds the lease with us.
func (l *Lease) Release() error { return l.file.Close() }
