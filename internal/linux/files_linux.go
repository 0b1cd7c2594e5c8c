package linux

import (
	"strconv"
	"strings"
)

const (
	usualFiles = 1024 // that programs expect to be able to open
	filesShare = 8    // of what a machine can have open, one sandbox gets one part
)

// OpenFiles is how many files each of some processes may have open where the limit
// would be most: together a part of what all of the machine can (fs.file-max), but not
// fewer than programs expect. Nothing is taken off without a number of processes.
func OpenFiles(processes int, most uint64) uint64 {
	if processes <= 0 {
		return most
	}
	all := uint64(0)
	if text, err := ReadSmall("/proc/sys/fs/file-max"); err == nil {
		all, _ = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64) // without a number it is none
	}
	return share(all, uint64(processes), most)
}

func share(all, processes, most uint64) uint64 {
	return min(most, max(usualFiles, all/filesShare/processes))
}
