// Package warden speaks with a process that drives sandboxes of gVisor from
// inside gVisor: what would otherwise be a start of runsc for each call is a
// message to a process that runs already. The other end is in cmd/cove-gvisor,
// which has all of gVisor; this package has nothing of it.
//
// The two speak over a socket that keeps messages apart, in JSON. A request to
// enter a sandbox carries the descriptors of the program's standard streams. Calls
// run side by side, so that a sandbox that does not answer holds up its own calls
// and no others. A warden ends with its socket; sandboxes do not, and the next
// warden, or runsc itself, goes on with them.
//
// The package must not make sandboxes: these are started by a process of their
// own, which is in the sandbox's control group from the beginning.
package warden
