// Package memory keeps the platform's records in the memory of the process:
// for tests, for trying things out, and for embedding Cove where nothing has to
// survive a restart.
//
// Records are kept as JSON, as stores that write to a disk keep them. What such
// a store would lose or refuse is therefore lost or refused here too, and a
// caller's copy is never shared with the one that is kept.
//
// This package must not do I/O, start goroutines or look at the clock, and it
// must never be kinder to its callers than the stores that last.
package memory
