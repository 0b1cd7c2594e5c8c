// Package duckdb drives cmd/cove-duckdb, the executable that is DuckDB, inside
// sandboxes: over nothing but [cove.Starter], so that every provider has it. Package
// ask is the protocol.
//
// A [Driver] opens a [Helper] in a place: one process there, which stays with its
// tables loaded between questions, takes one at a time, and is started again, with
// the same tables, where it has ended. A question whose context ends is stopped, and
// the process is killed if that does not help. [Driver.Put] brings the executable into
// sandboxes that cannot have it mounted, and [FrameCode] is the Python that makes a
// frame of what [Helper.Frame] wrote.
//
// Whatever comes out of a sandbox is bounded and checked before anybody gets it: one
// byte that is not of the protocol, an answer that nobody asked for, or one that does
// not fit its question ends the process, and the caller is told so.
//
// The package must not know a provider, judge a question, read or write files of the
// host but the executable itself, or keep anything of an answer.
package duckdb
