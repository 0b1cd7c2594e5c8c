// Package initproc starts the first process of a sandbox: in a pid namespace and
// a user namespace of its own, without privileges, behind a filter, and then
// executes a program.
//
// Everything happens in the forked child, in a list of system calls that was
// written down before the fork. So the program is born locked up: it never has a
// privilege that it would have to give back, and there is no thread of it that
// was forgotten. The mounts, the network and the names of the machine are those
// of the calling thread, which is usually in namespaces that were made for it;
// since those belong to the caller's user namespace and not to that of the new
// process, privileges in the latter would be of no use to it.
//
// The package looks nothing up and decides nothing: every path, number and
// descriptor is the caller's. It must not be used to start anything that keeps
// privileges.
//
// Minimum kernel: Linux 5.9 (clone3 is 5.3, into a control group 5.7,
// setns with a pidfd 5.8, close_range 5.9).
package initproc
