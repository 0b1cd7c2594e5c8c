// Package redistest starts Redis servers for tests: one, one with a replica that
// a Sentinel watches, or a Cluster. They listen on loopback, keep their data in
// the test's own folder, and end with the test.
//
// [Begin] makes a directory that has no need to settle.
//
// It must not use a server that it did not start, nor end one, and it knows no
// more of the protocol than the few commands that it sends.
package redistest
