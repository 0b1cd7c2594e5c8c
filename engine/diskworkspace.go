package engine

import "github.com/cove-sandbox/cove"

// Bounds on the files of a workspace on disk: what a file system can be made for.
const (
	minFilesBound = 1 << 20 // for a small workspace
	bytesPerFile  = 4 * cove.KiB
	maxFilesBound = 1 << 31
)

// What a file system takes of the disk beside the content of its files.
const (
	inodeSize       = 256
	fileSystemShare = 32 // one byte of so many
	fileSystemBase  = 4 * cove.MiB
)

// workspaceOnDisk is what a workspace on disk takes of the disk at most: its image is
// allocated in full, with room for the inodes of all its files.
func workspaceOnDisk(w cove.Workspace) cove.Bytes {
	n := w.Size + cove.Bytes(w.Files)*inodeSize
	return n + n/fileSystemShare + fileSystemBase
}

// checkFiles refuses a workspace on disk with more files than a file system of its size
// is made for.
func checkFiles(w cove.Workspace) error {
	most := min(max(minFilesBound, int64(w.Size/bytesPerFile)), maxFilesBound)
	if w.Kind != cove.WorkspaceDisk || w.Files <= most {
		return nil
	}
	return cove.InvalidField("workspace.files", "%d are too many; a workspace on disk of %s may have %d: one for each %s, and %d where that is less",
		w.Files, w.Size, most, bytesPerFile, int64(minFilesBound)).Remedy("ask for fewer, or for a larger workspace.size_mb")
}
