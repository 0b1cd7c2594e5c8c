package capability

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux"
)

// Securebits of prctl(2): root has no privileges by being root, changing users
// changes no capabilities, nothing is kept and nothing raised, and none of that
// can be changed again.
const secured = 1<<0 | 1<<1 | // NOROOT and its lock
	1<<2 | 1<<3 | // NO_SETUID_FIXUP and its lock
	1<<5 | // the lock of KEEP_CAPS, which is off
	1<<6 | 1<<7 // NO_CAP_AMBIENT_RAISE and its lock

// Drop empties every capability set of the calling thread, which the caller has
// locked, and sets no_new_privs. It cannot be undone. It needs CAP_SETPCAP, and
// when it fails the thread is in no state to run anything.
func Drop() error {
	if err := prctl("securebits", unix.PR_SET_SECUREBITS, secured); err != nil {
		return err
	}
	for c := uintptr(0); ; c++ {
		has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // past the last that this kernel knows
		}
		if err != nil {
			return fmt.Errorf("capabilities: bounding set: %w", err)
		}
		if has == 0 {
			continue
		}
		if err := prctl("bounding set", unix.PR_CAPBSET_DROP, c); err != nil {
			return err
		}
	}
	if err := prctl("ambient set", unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return NoNewPrivs()
}

// NoNewPrivs makes exec give nobody more privileges than he has, on the calling
// thread. It cannot be undone, and needs no privileges.
func NoNewPrivs() error {
	return prctl("no_new_privs", unix.PR_SET_NO_NEW_PRIVS, 1)
}

func prctl(what string, option int, value uintptr) error {
	if err := unix.Prctl(option, value, 0, 0, 0); err != nil {
		return fmt.Errorf("capabilities: %s: %w", what, err)
	}
	return nil
}

// Check reports what the calling thread still has of what [Drop] takes. It
// needs no /proc.
func Check() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	if sets != [2]unix.CapUserData{} {
		return fmt.Errorf("capabilities: effective %#x %#x, permitted %#x %#x, inheritable %#x %#x are left",
			sets[1].Effective, sets[0].Effective, sets[1].Permitted, sets[0].Permitted, sets[1].Inheritable, sets[0].Inheritable)
	}
	for c := uintptr(0); ; c++ {
		has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if err != nil {
			break
		}
		if has != 0 {
			return fmt.Errorf("capabilities: %d is left in the bounding set", c)
		}
	}
	for _, flag := range []struct {
		name   string
		option int
		want   int
	}{
		{"securebits", unix.PR_GET_SECUREBITS, secured},
		{"no_new_privs", unix.PR_GET_NO_NEW_PRIVS, 1},
	} {
		got, err := unix.PrctlRetInt(flag.option, 0, 0, 0, 0)
		if err != nil {
			return fmt.Errorf("capabilities: %s: %w", flag.name, err)
		}
		if got != flag.want {
			return fmt.Errorf("capabilities: %s is %#x, not %#x", flag.name, got, flag.want)
		}
	}
	return nil
}

// Probe reports as [linux.Missing] why this host cannot take privileges away.
func Probe() error {
	if _, err := unix.PrctlRetInt(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_IS_SET, 0, 0, 0); err != nil {
		return &linux.Missing{Feature: "dropping capabilities", Why: "the kernel has no ambient set", Remedy: "use Linux 4.3 or newer", Err: err}
	}
	return nil
}
