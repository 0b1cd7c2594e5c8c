package landlock

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux"
)

// Report is what the restriction really is.
type Report struct {
	ABI       int      // of the kernel
	Uncovered []string // what the ruleset wants refused and this kernel cannot refuse
}

// ABI returns which version of landlock the kernel has; an error is a
// [linux.Missing].
func ABI() (int, error) {
	n, _, errno := syscall.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, missing(errno)
	}
	return int(n), nil
}

// Probe reports as [linux.Missing] why this host has no landlock.
func Probe() error {
	_, err := ABI()
	return err
}

func missing(errno syscall.Errno) error {
	m := &linux.Missing{Feature: "landlock", Err: errno}
	switch {
	case errno == unix.ENOSYS:
		m.Why, m.Remedy = "the kernel was built without it", "use Linux 5.13 or newer with CONFIG_SECURITY_LANDLOCK"
	case errno == unix.EOPNOTSUPP:
		m.Why, m.Remedy = "it was switched off when the kernel started", "add landlock to the lsm= list of the kernel's command line"
	default:
		m.Why, m.Remedy = "something around this process forbids it", "let the container that cove runs in use the landlock system calls"
	}
	return m
}

// Open makes the ruleset without putting it over anybody: who inherits the
// descriptor can restrict himself with it. Every path must exist. The caller
// closes the descriptor.
func Open(rs Ruleset) (fd int, r Report, err error) {
	abi, err := ABI()
	if err != nil {
		return -1, Report{}, err
	}
	a, uncovered := rs.attributes(abi)
	n, _, errno := syscall.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&a)), unsafe.Sizeof(a), 0) //nolint:gosec // what the call takes
	if errno != 0 {
		return -1, Report{}, fmt.Errorf("landlock: ruleset: %w", errno)
	}
	for _, r := range rs.Rules {
		if err := r.add(n, Access(a.fs)); err != nil {
			_ = unix.Close(int(n))
			return -1, Report{}, fmt.Errorf("landlock: rule for %s: %w", r.Path, err)
		}
	}
	return int(n), Report{ABI: abi, Uncovered: uncovered}, nil
}

// Restrict puts the ruleset over the calling thread, which the caller has
// locked. It cannot be undone, and it needs no_new_privs. Every path must exist.
func Restrict(rs Ruleset) (Report, error) {
	fd, report, err := Open(rs)
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = unix.Close(fd) }()
	_, _, errno := syscall.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(fd), 0, 0)
	switch {
	case errno == unix.EPERM:
		return Report{}, fmt.Errorf("landlock: restrict: no_new_privs must be set first: %w", errno)
	case errno != 0:
		return Report{}, fmt.Errorf("landlock: restrict: %w", errno)
	}
	return report, nil
}

func (r Rule) add(ruleset uintptr, handled Access) error {
	fd := r.File
	if r.Path != "" {
		var err error
		if fd, err = unix.Open(r.Path, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }()
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	allow := r.Allow & handled
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		allow &= fileRights
	}
	if allow == 0 {
		return errors.New("it allows nothing")
	}
	beneath := unix.LandlockPathBeneathAttr{Allowed_access: uint64(allow), Parent_fd: int32(fd)}                                                         //nolint:gosec // descriptors are small
	_, _, errno := syscall.RawSyscall6(unix.SYS_LANDLOCK_ADD_RULE, ruleset, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&beneath)), 0, 0, 0) //nolint:gosec // what the call takes
	if errno == unix.EBADFD && r.Path == "" {
		return nil // a file without a tree, as memfd_create makes them: nobody is kept from those
	}
	if errno != 0 {
		return errno
	}
	return nil
}
