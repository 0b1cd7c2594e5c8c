// Package fake is a provider that plays a machine instead of isolating one. It
// passes the whole conformance suite, so that everything above a provider can
// be tested, and tried by hand, on any host in microseconds.
//
// A sandbox is a directory, opened as an [os.Root]: its files survive this
// process, its programs do not. With a [Keeper] the kept ones outlive the
// Provider within the process. Programs are small Go functions; lines of
// shell are read with mvdan.cc/sh and played by an interpreter of our own,
// since a ready one would use the host's pipes, user and working directory.
// Processes, signals, terminals, memory, ports and the clock are simulated:
//
//	Provider    directories, snapshots and spares below Config.Dir
//	sandbox     one directory with a tree of files and a machine
//	tree        mounts, links, quotas and watches over os.Root
//	machine     the process table, the limits, the pause gate, the ports
//	job         one Command: its processes, its streams, its Result
//	Keeper      machines with kept programs, for the next Provider
//	shell       plays sh and bash lines
//	program     a Go function that behaves like one of coreutils
//
// The package must never run a program of the host, never touch a file outside
// Config.Dir and the volumes it was given, and never claim a boundary: its
// Isolation says "none". Nothing in it polls: when no program has anything to
// do, every goroutine waits on a channel or a timer, so that it works under
// testing/synctest.
package fake
