//go:build linux

package guest

import (
	"slices"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// Mounted is what a command of [MountArgs] writes when it is done.
const Mounted = protocol.Mounted

// MountArgs is the command, inside the sandbox, that mounts file systems in memory:
// each is PATH:OPTIONS. It must be started as root, who may mount, by who may do
// that from outside, and before there are programs.
func MountArgs(path string, mounts ...string) []string {
	return append([]string{path, protocol.MountWord}, mounts...)
}

// MountDoorArgs is [MountArgs] that goes on as [DoorArgs], without the privilege.
func MountDoorArgs(path string, mounts ...string) []string {
	return append(MountArgs(path, slices.Clone(mounts)...), protocol.DoorWord)
}
