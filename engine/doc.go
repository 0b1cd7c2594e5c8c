// Package engine is the platform in one process: it takes a caller's action
// through policy, journal, session and provider, in that order, every time.
//
// [Engine.As] binds the engine to a caller and is the in-process mode of Cove.
// Every method of every part is one call to act or actSeq, the only road to a
// sandbox; the guard test proves it.
//
// The session table is the truth. A record is put before the sandbox it speaks
// of is made and marked ended before the sandbox is destroyed, so that whatever
// a crash leaves behind is either named by a record, and taken up again by
// recovery, or an orphan, and removed.
//
// A lease has a turn, taken by what changes its state (start, stop, pause,
// close), and a mutex for its fields. The order is: turn, Engine.mu, lease.mu;
// no provider, store or journal is called with a mutex held.
//
// The engine must not know HTTP, files of its own configuration, or what kind
// of provider it drives.
package engine
