//go:build linux && race

package e2b_test

// raced says that the race detector watches.
const raced = true
