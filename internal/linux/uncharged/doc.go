// Package uncharged counts what the kernel keeps for the programs of a sandbox
// without charging it to a control group: locks of files, connections that are not
// accepted, and sockets of UDP that have a port.
//
// To count locks holds up every process on the machine that locks something, if only for
// a moment. So it is done when the memory that the kernel cannot give back has grown
// since the last time, whichever sandbox made it grow, and else seldom. The package must not end
// a process: it says what it counted.
//
// What is not seen: open file description locks, which the kernel shows to every
// sandbox alike, and locks whose process has ended while another one has its table
// of files. A filter must refuse both.
//
// Minimum kernel: Linux 4.15, for locks of the caller's pid namespace alone.
package uncharged
