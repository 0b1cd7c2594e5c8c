// Package policy decides what a principal may do and which commands may run.
//
// A decision has two layers. Authorization compares the scope that a verb needs
// with those that the principal holds. Content applies a profile, a list of
// programs, to a command: the shell line is parsed, the names of the commands in
// every pipe, list, substitution and function are found, and one that is not on
// the list is refused with the rule, the word and its place, so that an agent can
// read why and go on.
//
// This check is not what keeps programs to the list. It reads names, and a shell,
// awk or Python can start a program without writing its name down. A decision
// carries the list (cove.Programs); the sandbox's kernel lets the command, and all
// that it starts, execute nothing else.
//
// The package does no I/O, reads no clock and keeps no state between decisions.
package policy
