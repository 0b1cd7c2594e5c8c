// Package intake bounds what request bodies cost while they are in memory.
//
// A [Budget] counts the bytes of all bodies in flight, for each key and for the
// server. A body is charged as its bytes arrive, so one that is half sent counts
// with what arrived and not with what it announced, and it stays charged until its
// request is over, because the decoded value lives that long. [CheckJSON] bounds
// the number of values and the depth of JSON before it is decoded. [Refuse]
// answers without waiting for a body that is not wanted.
//
// Bodies that go straight into a file or a sandbox through a fixed buffer are not
// charged.
package intake
