// Package history is what clients of a cluster, or of a server by itself, did and were told while it
// was broken, and the rules that must hold for it all the same.
//
// A history is a file of JSON lines. The first one is about the run. Every other
// line is the begin of something, "call", or what came of it, "return", tied
// together by their number. What has no return, or one without a status, may have
// happened or not, then or at any later time. Times are nanoseconds of one clock
// that never goes back.
//
// The rules are in [Check]. They ask only for what no order of events can excuse: a
// history that breaks one shows a fault of the cluster, and not bad luck.
//
// The package must not know how a cluster is built, started or broken, nor talk to
// one: it has nothing but the file, so that anybody can look at one later.
package history
