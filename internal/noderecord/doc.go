// Package noderecord keeps copies of the records of a node on the node's own disk,
// and puts them back into a directory that lost them.
//
// [Directory] is a cove.Directory around another one. A record of a session of this
// node, of a snapshot or of a volume is written to a file of its own after the
// directory has it, and so are the bounds of tenants that this node has seen:
//
//	session-<id>.json    the record, as the directory has it
//	snapshot-<id>.json
//	volume-<id>.json
//	tenant-<digest>.json
//	origin               which directory the copies are of, and, as the time of the
//	                     file, when it last answered
//
// The file of a session is removed when the directory says that the session has ended
// or is another node's. As long as it is there, nothing that belongs to the session may
// be removed from this node: see [Directory.Keeps].
//
// # When a node starts
//
// [Directory.Announce] compares each copy with the directory. What the directory does
// not know it lost, and it is told again; unless the directory is the same one as
// before and this node was away for so long that the record of an end may have been
// forgotten as well: then callers were told that the session is lost, and it has ended. A copy that
// cannot be read keeps its session's sandbox and files where they are; the log names
// it. So does an empty one, which stands for what was found while neither copies nor
// the directory said anything.
//
// A copy holds what the record holds, so the folder is readable by its owner alone.
//
// The package must not remove anything but copies, must not start or end sandboxes,
// and must not decide what a directory decides: which node has a session, and which
// session holds a user and thread.
package noderecord
