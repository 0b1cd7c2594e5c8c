package userns

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Leases hands out users of the host, one range for each sandbox, so that two
// sandboxes share no user even where something else between them fails. Only
// root needs it. Methods are safe for concurrent use, and so are several
// processes with one file.
//
// A lease is a lock on as many bytes of the file as it has users, so that leases of
// different sizes can share one. It ends when the last descriptor of it is closed,
// wherever that is: whoever keeps a sandbox alive beyond this process holds
// [Lease.File] open, or what [Lease.Holder] returned.
type Leases struct {
	path   string
	ranges Range
	size   uint32

	mu   sync.Mutex
	next uint32 // guarded by mu; the slot to try first
}

// LeaseConfig says which users there are to hand out.
type LeaseConfig struct {
	File  string // made if it is not there; its directory must be root's
	First uint32 // 0 means 200000
	Count uint32 // of all users; 0 means 100000
	Size  uint32 // of users in one lease; 0 means 1
}

// OpenLeases checks the range; the file is opened by each lease.
func OpenLeases(cfg LeaseConfig) (*Leases, error) {
	l := &Leases{path: cfg.File, ranges: Range{cfg.First, cfg.Count}, size: max(cfg.Size, 1)}
	if l.ranges.First == 0 {
		l.ranges.First = 200_000
	}
	if l.ranges.Count == 0 {
		l.ranges.Count = 100_000
	}
	const reserved = 65_536 // the host's own users
	if l.ranges.First < reserved || uint64(l.ranges.First)+uint64(l.ranges.Count) > 1<<32-1 || l.size > l.ranges.Count {
		return nil, fmt.Errorf("users for sandboxes: %d from %d on, %d each, is no good range; start at %d or above", l.ranges.Count, l.ranges.First, l.size, reserved)
	}
	// Processes that start together do not try the same slots.
	l.next = uint32(os.Getpid()) % l.slots() //nolint:gosec // any number will do
	return l, nil
}

func (l *Leases) slots() uint32 { return l.ranges.Count / l.size }

// Range is a run of ids that belong to somebody.
type Range struct {
	First, Count uint32
}

// ErrNoUsers says that all users are leased.
var ErrNoUsers = errors.New("all users for sandboxes are taken")

// Lease is a range of users that nobody else has. Release it once.
type Lease struct {
	First, Count uint32
	file         *os.File
	slot         uint32 // its first byte
}

// Take returns users that no lease holds, in this process or another.
func (l *Leases) Take() (*Lease, error) {
	// A lock belongs to what one open gave; each lease needs its own.
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("users for sandboxes: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	slots := l.slots()
	for range slots {
		slot := l.next
		l.next = (l.next + 1) % slots
		err := lock(f, unix.F_WRLCK, slot*l.size, l.size)
		if err == nil {
			return &Lease{First: l.ranges.First + slot*l.size, Count: l.size, file: f, slot: slot * l.size}, nil
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
			return nil, errors.Join(fmt.Errorf("users for sandboxes: lock: %w", err), f.Close())
		}
	}
	return nil, errors.Join(ErrNoUsers, f.Close())
}

// Adopt returns a lease that another process took and passed on by its file,
// which it takes over.
func (l *Leases) Adopt(first uint32, f *os.File) *Lease {
	return &Lease{First: first, Count: l.size, file: f}
}

func lock(f *os.File, kind int16, first, count uint32) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var locked error
	err = conn.Control(func(fd uintptr) {
		locked = unix.FcntlFlock(fd, unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: int64(first), Len: int64(count)})
	})
	return errors.Join(err, locked)
}

// File is what holds the lease; another process that has it, too, holds it with
// us.
func (l *Lease) File() *os.File { return l.file }

// Holder returns a file that holds the lease, too, and that can only be read, which
// finds nothing: for who must not be able to write to the file, or to lease. The
// lease is one that was taken, not adopted.
func (l *Lease) Holder() (*os.File, error) {
	f, err := os.Open(l.file.Name())
	if err != nil {
		return nil, fmt.Errorf("users for sandboxes: %w", err)
	}
	// Locks of readers exclude who takes a lease as well as those of writers.
	if err = errors.Join(lock(l.file, unix.F_RDLCK, l.slot, l.Count), lock(f, unix.F_RDLCK, l.slot, l.Count)); err != nil {
		return nil, errors.Join(fmt.Errorf("users for sandboxes: lock: %w", err), f.Close())
	}
	return f, nil
}

// Release gives the users back, unless another process holds the lease with us.
func (l *Lease) Release() error { return l.file.Close() }
