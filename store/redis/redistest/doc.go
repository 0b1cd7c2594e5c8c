// Package redistest starts Redis servers for tests: one, one with a replica that
// a Sentinel watches, or a Cluster. They listen on loopback, keep their data in
// the test's own folder, and end with the test.
//
// [Begin] begins a directory, so that nodes that join later need not wait a lease.
//
// It must not use a server that it did not start, nor end one, and it knows no
// more of the protocol than the few commands that it sends.
package redistest
