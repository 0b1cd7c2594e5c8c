// Package spool keeps what a program writes: bounded, in order, and readable
// from any offset while the program still runs. The head and tail of an answer,
// the kept output behind a handle, and the callers who follow a background
// program are all served by one [Log]. It must not know about programs, sessions
// or policy, and must never make a program fail because its output cannot be kept.
//
// # What is kept
//
// Output is one sequence of bytes from two streams. Offsets count the bytes of
// both streams together, as they were written.
//
//   - The first Config.MaxBytes are kept, and [Log.Page] reads them. They stay in
//     memory up to Config.MemoryBytes, and go to a file beyond that.
//   - What follows is dropped, but for a window of the newest bytes, between a half
//     and the whole of Config.MemoryBytes. A follower who keeps up therefore misses
//     nothing. For one who does not, the offset of a chunk is higher than the end of
//     the chunk before it: that is the gap. Offsets never lie.
//   - Of each stream, the beginning and the end are held for [Log.Summary], whatever
//     else was dropped and whatever the other stream wrote.
//
// A log costs a few small allocations, and no file and no goroutine, until it
// outgrows Config.MemoryBytes. When the file cannot be written, the log keeps
// what it has, treats the rest as beyond the cap, and says so in [Log.Err].
//
// # The file
//
// Output is stored in blocks. A block is the bytes of both streams as they came,
// preceded by the lengths of the runs of one stream, as unsigned varints that
// begin with stdout and alternate; the last run is what remains. A program that
// changes streams with every byte makes the file twice as long, not more.
//
//	file    = { block } [ footer ]
//	block   = runs data
//	footer  = json length(4) crc32(4) "covespl1"
//
// The index of the blocks is in memory and, after [Log.Persist], in the footer;
// without one the file is of no use to another process.
package spool
