package agent

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// sigaction is the kernel's own form, which is the same on amd64 and arm64.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// listen makes hang-up and interrupt do what they usually do. Go leaves these
// two ignored where whoever started us ignored them, as nohup does, and programs
// would inherit that.
func listen() {
	var usual sigaction // SIG_DFL
	for _, sig := range []unix.Signal{unix.SIGHUP, unix.SIGINT} {
		// It fails only for signals that there are not.
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&usual)), 0, unsafe.Sizeof(usual.mask), 0, 0) //nolint:gosec // the kernel reads it during the call
	}
}
