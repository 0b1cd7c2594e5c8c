package daemon

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
)

// Bounds on the file descriptors that new sandboxes leave to requests, programs, the
// journal and the database.
const (
	leastDescriptors = 64
	mostDescriptors  = 1024
	// makingDescriptors is what a sandbox may take while it is made, with what it keeps.
	makingDescriptors = 16
)

// descriptors counts the file descriptors that this process has and may have.
func descriptors() (used, limit int64, err error) {
	const dir = "/proc/self/fd"
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0, 0, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return 0, 0, err
	}
	if used = info.Size(); used == 0 { // before Linux 6.2
		names, err := os.ReadDir(dir)
		if err != nil {
			return 0, 0, err
		}
		used = int64(len(names))
	}
	return used, int64(min(l.Cur, 1<<40)), nil
}

// descriptorsFor refuses sandboxes for which there are too few file descriptors, so many
// being made already; with 0 it reports whether the reserve itself is used up.
func descriptorsFor(making int64) error {
	used, limit, err := descriptors()
	if err != nil {
		return nil //nolint:nilerr // a system that does not count them
	}
	reserve := min(max(limit/4, leastDescriptors), mostDescriptors)
	if limit-used-making*makingDescriptors >= reserve {
		return nil
	}
	return cove.Errorf(cove.Exhausted, "the server has %d of the %d file descriptors in use that its limit allows; the last %d are for requests, its journal and its database", used, limit, reserve).
		Reason(cove.ReasonCapacity).With("retry_after", 5).With("used", used).With("limit", limit).
		Remedy("close sessions, or have the operator raise the limit with ulimit -n, or LimitNOFILE in the unit of systemd, and restart the server")
}
