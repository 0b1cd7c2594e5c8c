//go:build linux

package agent

import (
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// apart makes an agent somebody whom programs cannot send signals to, where the
// kernel does not keep the first process from being killed: its own user stays what
// it is, and it acts as the user of the programs, whom they are alone. It needs the
// privilege to choose a user, and gives that up.
func apart(word string) (user int, err error) {
	own := os.Getuid()
	if user, err = strconv.Atoi(word); err != nil || user <= 0 || user == own {
		return 0, errors.New("it is no other user: " + word)
	}
	if err := syscall.Setresuid(own, user, own); err != nil {
		return 0, os.NewSyscallError("setresuid", err)
	}
	// What was given at the start must not be inherited either.
	_, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0)
	if errno != 0 && errno != unix.EINVAL {
		return 0, os.NewSyscallError("prctl", errno)
	}
	return user, powerless()
}
