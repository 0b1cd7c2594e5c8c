// Package policy decides what a principal may do and which commands may run.
//
// A decision has two layers. Authorization compares the scope that a verb needs
// with those that the principal holds. Content applies a profile, a list of
// programs, to a command: the shell line is parsed, every command of every
// pipe, list, substitution and function is found, and programs that start other
// programs are looked into. What cannot be proved harmless is refused, with the
// rule, the word and its place, so that an agent can read why and go on.
//
// How a line is judged, in order:
//
//	source     bounds on size and nesting; text that shells read in two ways
//	fact       which variables hold only digits, or never start with a dash
//	walk       every statement, word, assignment and redirection
//	call       the name of each command: function, builtin or program
//	rules      what a builtin or a program does with its arguments
//
// The package does no I/O, reads no clock and keeps no state between decisions.
// It must not be taken for a boundary: a script in a file is not read, and the
// kernel is what confines a program. A profile is a guard-rail that stops
// accidents early and leaves a record.
package policy
