// Package gvisor makes sandboxes with a kernel of their own: gVisor, which runs
// in user space and answers the system calls of the programs, so that these never
// reach the host's kernel.
//
// A sandbox is what an OCI runtime runs. Its first process is the guest agent,
// which listens inside; each host that drives it has a door, a program that the
// runtime starts once and that hands the agent two pipes. All else goes through
// these pipes: programs, files, terminals, ports and the way out. So an exec
// costs a message and no process of the host's.
//
// The runtime is runsc: the executable of this build, or one that the operator
// names. It is a process of its own, and so is every sandbox; nothing of gVisor
// is linked into Cove. Sandboxes live on when this process ends, and are found
// again by what is written down of them in the provider's directory.
//
// A snapshot is the memory of a whole sandbox and its files. What is made from it
// with the same sizes and the same template goes on where the other one was;
// with others, only the files are the same.
//
// Spares for which interpreters import modules ahead are restored from an image of
// memory in which one has done so, once there is one.
//
// The package must not link gVisor, must not trust what a sandbox says, and must
// leave nothing of a sandbox behind: no process, control group, mount or file.
package gvisor
