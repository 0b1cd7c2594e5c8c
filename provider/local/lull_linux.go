package local

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// drowsy is by how much, in nanoseconds, the thread that watches all others may
// come late.
const drowsy = "2000000"

// lull lets the thread with which Go's runtime watches the others sleep longer. It
// would look ten thousand times a second whether one of them is stuck, and where a
// process lives for a few milliseconds that is a tenth of its work. Only root may;
// and if the runtime had another first thread than this one some day, that one's
// timers would be late by as much.
func lull() {
	slack, err := unix.Open("/proc/"+strconv.Itoa(firstThread())+"/timerslack_ns", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(slack) }()
	_, _ = unix.Write(slack, []byte(drowsy))
}

// firstThread returns the first thread that this process began, or 0.
func firstThread() int {
	process := unix.Getpid()
	// The kernel counts up, and mostly nobody else began one meanwhile.
	if next := process + 1; unix.Tgkill(process, next, 0) == nil {
		return next
	}
	dir, err := unix.Open("/proc/self/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Close(dir) }()
	var list [1024]byte // there are a handful
	n, err := unix.ReadDirent(dir, list[:])
	if err != nil {
		return 0
	}
	_, _, names := unix.ParseDirent(list[:n], -1, nil)
	first := 0
	for _, name := range names {
		if id, err := strconv.Atoi(name); err == nil && id != process && (first == 0 || id < first) {
			first = id
		}
	}
	return first
}
