package gvisor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
)

// places is the room for files of a sandbox. A runtime's configuration cannot
// bound the number of files, so that they are mounted from inside, before the
// first program, by somebody who may and is gone then.
type places struct {
	Workspace bounds `json:"workspace"`
	Temp      bounds `json:"temp"`
}

// bounds are those of one file system in memory.
type bounds struct {
	Size  int64 `json:"size"`
	Files int64 `json:"files"`
}

// placesOf is the room that a spec asks for, in what gVisor itself leaves of the memory.
func placesOf(spec cove.Spec) places {
	spec.Resources.Memory = inside(spec.Resources.Memory)
	workspace, temp := spec.Room()
	p := places{
		Workspace: bounds{Size: int64(workspace), Files: spec.Workspace.Files},
		Temp:      bounds{Size: int64(temp), Files: tempFiles},
	}
	if p.Workspace.Files == 0 {
		p.Workspace.Files = workspaceFiles
	}
	return p
}

// page is what file systems in memory count in.
const page = 4096

// option is how the agent mounts one. Its top counts as a file, too.
func (b bounds) option(at, more string) string {
	return fmt.Sprintf("%s:size=%d,nr_inodes=%d,%s", at, (b.Size+page-1)/page*page, b.Files+1, more)
}

// options is how the agent mounts all of them.
func (p places) options() []string {
	return []string{
		p.Workspace.option(cove.WorkspacePath, fmt.Sprintf("mode=0755,uid=%d,gid=%d", user, user)),
		p.Temp.option("/tmp", "mode=1777"),
		bounds{Size: int64(sharedSize), Files: sharedFiles}.option("/dev/shm", "mode=1777"),
	}
}

// fits refuses memory that gVisor has no use for, and a workspace in memory that is more
// than this machine has: its size would be a promise, and its bound none.
func fits(spec cove.Spec) error {
	if m := spec.Resources.Memory; m > 0 && m < leastMemory {
		return cove.Errorf(cove.Unsupported, "memory_limit: %s are too little for gVisor, which takes some of it for itself", m).
			With("field", "memory_limit").Remedy("ask for %s or more", leastMemory)
	}
	w, all := spec.Workspace, allMemory()
	if w.Size > all {
		return cove.Errorf(cove.Unsupported, "workspace.size_mb: %s are more than the %s of memory that this machine has", w.Size, all).
			With("field", "workspace.size_mb").Remedy("ask for less")
	}
	return nil
}

// allMemory is how much this machine has.
func allMemory() cove.Bytes {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return cove.Bytes(uint64(info.Totalram) * uint64(info.Unit)) //nolint:gosec,unconvert // of a machine; 32 bits on some
}
