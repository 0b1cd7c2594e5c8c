// Package sqlite keeps the platform's records in one SQLite file. It is the
// store of a single machine, built on a pure Go SQLite so that the binary needs
// no C library.
//
// Each record is one row: the whole of it as JSON, and beside it copies of the
// few fields that are searched or must be unique. Writes go through one
// connection, one at a time; reads have connections of their own and never
// wait for a write (write-ahead log). A write that has returned survives the
// death of the process; the last ones may be lost when the power fails, but
// none is ever kept in part.
//
// Several processes may open the same file. The file is readable by its owner
// alone, since it holds the environment of sessions and hashes of keys.
//
// This package must not decide anything: it knows no policy, no clock and no
// defaults, and it must not be used for data that a sandbox can make large,
// such as archives and output.
package sqlite
