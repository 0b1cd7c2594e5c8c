//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/runsc/container"
)

// disown makes a container forget processes that ended: another process may have
// got the number since, and would be killed.
func disown(c *container.Container) {
	if c.Sandbox != nil && !ours(c.Sandbox.Pid.Load()) {
		c.Sandbox.Pid.Store(0)
	}
	if !ours(c.GoferPid.Load()) {
		c.GoferPid.Store(0)
	}
}

// ours reports whether a process is of gVisor: this executable, or one that is
// named like it, from an earlier build.
func ours(pid int) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		return false
	}
	if exe, err := os.Stat(filepath.Join(proc, "exe")); err == nil && os.SameFile(self, exe) {
		return true
	}
	line, err := os.ReadFile(filepath.Join(proc, "cmdline")) //nolint:gosec // a number
	return err == nil && strings.HasPrefix(string(line), "runsc-")
}

// kill ends the process of a sandbox without asking anybody, if it is known.
func kill(root, id string) {
	b, err := os.ReadFile(filepath.Join(root, id+"_sandbox:"+id+".state")) //nolint:gosec // gVisor's own
	if err != nil {
		return
	}
	var state struct {
		Sandbox struct {
			Pid int `json:"pid"`
		} `json:"sandbox"`
	}
	if json.Unmarshal(b, &state) == nil && state.Sandbox.Pid > 1 && ours(state.Sandbox.Pid) {
		_ = unix.Kill(state.Sandbox.Pid, unix.SIGKILL) // it may have ended
	}
}
