package cove

import (
	"errors"
	"syscall"
)

// DiskUse is what a tenant keeps on the disk. A snapshot or an archive counts as
// 64 KiB at least.
type DiskUse struct {
	Snapshots  Bytes `json:"snapshots"`
	Archives   Bytes `json:"archives"`   // the workspaces of stopped sessions
	Output     Bytes `json:"output"`     // of programs, and what is set aside for that of background programs
	Artifacts  Bytes `json:"artifacts"`  // code that was run and what came of it
	Workspaces Bytes `json:"workspaces"` // what workspaces on disk take at most, of sessions that have a sandbox
}

// Sum is all of it.
func (u DiskUse) Sum() Bytes { return u.Snapshots + u.Archives + u.Output + u.Artifacts + u.Workspaces }

// Plus adds two uses.
func (u DiskUse) Plus(v DiskUse) DiskUse {
	return DiskUse{
		u.Snapshots + v.Snapshots, u.Archives + v.Archives, u.Output + v.Output, u.Artifacts + v.Artifacts, u.Workspaces + v.Workspaces,
	}
}

// DiskFault returns the code and the words for what a disk itself refuses: it is
// full, read-only or damaged. ok is false for every other error.
func DiskFault(err error) (code Code, words string, ok bool) {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return Exhausted, "the disk is full; free some space and try again", true
	case errors.Is(err, syscall.EROFS):
		return Unavailable, "the disk is read-only; make it writable", true
	case errors.Is(err, syscall.EIO):
		return Unavailable, "the disk gave an error; check that it is healthy", true
	}
	return "", "", false
}
