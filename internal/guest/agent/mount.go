//go:build linux

package agent

import (
	"os"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// Mount gives a sandbox its room for files: for each argument of the form
// PATH:OPTIONS a file system in memory is mounted at the path. Then it gives up its
// privileges and is a [Door], if that is the last argument, or says that it is done.
// It returns the exit code of the process. Who starts it is the host, before there
// are programs: it must be root and may mount.
func Mount(args []string) int {
	door := len(args) > 0 && args[len(args)-1] == protocol.DoorWord
	if door {
		args = args[:len(args)-1]
	}
	for _, arg := range args {
		path, options, ok := strings.Cut(arg, ":")
		if !ok {
			return complain("what is to be mounted where? " + arg)
		}
		if err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
			return complain("nothing can be mounted at " + path + ": " + err.Error())
		}
	}
	if !door {
		_, _ = os.Stdout.WriteString(protocol.Mounted)
		return 0
	}
	if err := powerless(); err != nil {
		return complain("privileges cannot be given up: " + err.Error())
	}
	return Door()
}

// powerless gives up all privileges of this process.
func powerless() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none)), 0) //nolint:gosec // as the kernel wants it
	if errno != 0 {
		return errno
	}
	return nil
}
