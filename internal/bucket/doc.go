// Package bucket keeps the workspaces of stopped sessions where several nodes
// reach them: in a folder that they share, or in a bucket of an S3 server.
//
// A stream is spooled to a file of this node first, while its SHA-256 is made,
// and then stored as a blob under that digest. A small reference for each session
// names its blob. Nothing is locked, and what is stored is not changed any more:
//
//	owner                        whose all of it is
//	blobs/<sha256>.<half hour>   a stream
//	sessions/<id>                "cove2 <sha256>.<half hour> <size> <id>\n"; of older
//	                             builds "cove1 <sha256>.<half hour> <size>\n"
//	drafts/<id>                  of a shared folder: what is being written
//
// Who opens archives names their owner, and is refused where it is another: a server
// removes what its own table does not know, and must not do so among those of others.
//
// # How no blob is lost
//
// The name of a blob ends with the half hour in which it was named, by the clock
// of the store and not by that of a node. Who stores the same stream in the same
// half hour stores nothing; who does it later makes another blob. From naming a
// blob to writing the reference a node has 25 minutes, and gives up after that. So
// nobody can begin to refer to a blob whose half hour began an hour ago: it is
// either referred to already, or never will be. Sweep removes the latter, and
// looks at references only after it has read the clock. Clocks of nodes do not
// matter, and the clock of the store may be wrong, but must not jump by minutes.
//
// A reader compares length and digest, and holds the last piece back until they
// are right. S3 is spoken by hand, five calls that are signed with the digest of
// what is sent: docs/decisions/052-archives-that-nodes-share.md.
//
// This package must not look into a stream. What is in it comes from a sandbox
// and is unpacked inside one, never here. It must not show credentials: errors
// name the place, and of what a server says only its error code.
package bucket
