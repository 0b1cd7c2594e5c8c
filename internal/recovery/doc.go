// Package recovery keeps a server from losing sessions with its database. It
// keeps a copy of each record that stands for files beside the database, compares
// the copies with the database before an engine opens it, and makes records again
// from copies, sandboxes, archives and the journal.
//
// # Copies
//
// [Copies] is a cove.Store around another one. A record of a session that has not
// ended, of a snapshot or of a volume is written to a file of its own after the
// store has it, and the file is removed before the store forgets the record:
//
//	records/session-<id>.json   the record, as the database has it
//	records/snapshot-<id>.json
//	records/volume-<id>.json
//	records/new-database        the database was empty when it was opened, and
//	                            [Site.Look] has not been through since
//
// So, whenever a process is killed, the database has every record that has a copy,
// in the version of the copy or a newer one. Where it has not, the database was
// lost, replaced by an older one, or lost what its log had: a session whose copy is
// newer has its sandbox or its archive, and the engine would remove both, because
// no record speaks of them. That is what [Site.Look] finds.
//
// A copy holds what the record holds, so the folder is readable by its owner alone,
// as the database is.
//
// # What this package must not do
//
// It must not remove anything unless [Site.Discard] was called, but for copies of
// what is gone. It must not decide for the operator, and must not look into archives
// or sandboxes. It is not for a node of a cluster, whose records are where all nodes
// keep them.
package recovery
