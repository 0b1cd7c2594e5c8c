// Package packed writes executables that cove has inside to files: make build
// compiles them and puts them, compressed, into the packages that own them, and each
// is kept as a file that is written once for each build.
//
// It must not run an executable, nor know which there are or where they belong.
package packed
