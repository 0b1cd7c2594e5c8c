//go:build linux

package agent

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminal is a new terminal of the sandbox.
type terminal struct {
	master int // for the host
	keep   int // the same, for its size
	slave  int // for the program
}

func openTerminal(cols, rows uint16) (t terminal, err error) {
	t.master, err = unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return t, &os.PathError{Op: "open", Path: "/dev/ptmx", Err: err}
	}
	defer func() {
		if err != nil {
			_ = unix.Close(t.master)
		}
	}()
	if err := unix.IoctlSetPointerInt(t.master, unix.TIOCSPTLCK, 0); err != nil {
		return t, err
	}
	size := unix.Winsize{Col: cols, Row: rows}
	if err := unix.IoctlSetWinsize(t.master, unix.TIOCSWINSZ, &size); err != nil {
		return t, err
	}
	if t.keep, err = unix.FcntlInt(uintptr(t.master), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return t, err
	}
	// By the master itself: its name need not be in any /dev/pts that we see.
	slave, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(t.master), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		_ = unix.Close(t.keep)
		return t, errno
	}
	t.slave = int(slave)
	return t, nil
}
