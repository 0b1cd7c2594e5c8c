// Package artifact keeps code that was run and what came of it, as files that
// people read afterwards: one JSON object for each run, which only the user of
// Cove may read.
//
//	executions/20261115T093000.250Z_1f3a5c7e9b0d.json
//
// The name is the time, in UTC, and the beginning of a hash of the code without
// its secrets, so that runs of the same code are found together.
//
// Of every file the size is bounded, of all files the age, the number and the
// size together. What is known to be a secret, and what looks like one, is
// replaced before anything is written; [Config] says what that is. It is a
// precaution and not a promise: code can print a secret in a form that nobody
// recognizes.
//
// The package must not keep anything that it was told not to keep, must not make
// the run fail that it is told of, and must not know how code is run.
package artifact
