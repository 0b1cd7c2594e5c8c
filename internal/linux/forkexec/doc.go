// Package forkexec starts programs in a sandbox and ends them, with all that
// they started.
//
// Start is the hot path of the agent: one vfork, a handful of calls in the
// child, one exec. os/exec cannot do it, since a child must become the reaper of
// its own orphans before it runs: then a program and everything below it stay
// one tree, whatever they do with sessions and double forks, and KillTree finds
// them all without privileges and without control groups.
//
// The package looks nothing up and decides nothing: the caller gives a path, the
// whole environment and every descriptor. It must not be used to enter
// namespaces or to change users.
//
// Minimum kernel: Linux 5.9 (close_range; pidfd_open is 5.3). KillTree needs
// /proc of the caller's own pid namespace.
package forkexec
