// Package volume keeps the files of volumes, each in a folder of the host that is
// named for its id.
//
// The folders belong to the user that sandboxes are, or to us where we may not
// give anything away, and everybody may write to them: what one sandbox made,
// another can change. The directory that holds them is ours alone.
//
// What is in a folder comes from sandboxes, and may change while it is looked at.
// All names are resolved below the directory by the operating system (os.Root),
// nothing is followed, and no look goes on for longer than its bounds. How deep
// folders lie in one another costs nothing when they are removed.
//
// This package must not decide who may have a volume, nor what is too much.
package volume
