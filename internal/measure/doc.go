// Package measure finds out what sandboxes cost on this machine, beside what
// the host itself costs in the same run: the time to run `true` in a sandbox
// that lives, in one from the pool and in a fresh one, how many run at once,
// how much memory an idle sandbox keeps, and what is left after many of them.
//
// Machines differ and are noisy, so nothing is measured alone: contenders run
// in turn, in an order that changes from round to round, and their ratio is
// the median of the ratios of each round.
//
// [Load] is for a whole platform: many sessions, commands and files at once. It
// says what went wrong, and how long the rest took.
//
// The package must not decide whether a number is good, and must not print. It
// must not be used to assert anything about time in a unit test. It starts only
// `true` and `echo`, other people's sandboxes around it, and what a provider starts.
package measure
