package userns

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux"
)

// FirstUser and EndOfUsers bound those that may be given to sandboxes: above what
// distributions give to people, to their containers and to services.
const (
	FirstUser  = 1_900_000_000
	EndOfUsers = FirstUser + 100_000
)

// MachineDir is one directory for all providers of a machine.
const MachineDir = "/run/cove/leases"

// OpenMachine returns the leases that all providers of this machine share; "" is
// [MachineDir].
func OpenMachine(dir string) (*Leases, error) {
	if dir == "" {
		dir = MachineDir
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return OpenLeases(LeaseConfig{Dir: dir, First: FirstUser, Count: EndOfUsers - FirstUser})
}

// CanLease reports whether we are root in a place with users to give away.
func CanLease() bool {
	if os.Geteuid() != 0 {
		return false
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if unix.Capget(&header, &sets[0]) != nil {
		return false
	}
	const need = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETPCAP | 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_KILL
	return sets[0].Effective&need == need && mapped("/proc/self/uid_map") && mapped("/proc/self/gid_map")
}

// mapped reports whether a user namespace has all the users that we give away.
func mapped(path string) bool {
	text, err := linux.ReadSmall(path)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		of := strings.Fields(line)
		if len(of) != 3 {
			continue
		}
		first, err1 := strconv.ParseUint(of[0], 10, 33)
		size, err2 := strconv.ParseUint(of[2], 10, 33)
		if err1 == nil && err2 == nil && first == 0 && size >= EndOfUsers {
			return true
		}
	}
	return false
}
