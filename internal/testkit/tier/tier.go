// Package tier separates the tests of the gate from the rest. make test runs go test
// -short, which is the gate; make test-all runs go test without it, which is the full
// tier. Only tests import it.
package tier

import "testing"

// Prefix starts the reason with which a test of the full tier is skipped in the
// gate. The test report counts these tests and does not list them.
const Prefix = "full tier: "

// Full skips t in the gate. covered says which test of the gate covers the same
// code, or why the gate can go without.
func Full(t testing.TB, covered string) {
	t.Helper()
	if testing.Short() {
		t.Skip(Prefix + covered)
	}
}

// Pick returns the gate's groups of a suite in the gate. In the full tier it
// returns full; no groups means the whole suite there.
func Pick(gate []string, full ...string) []string {
	if testing.Short() {
		return gate
	}
	return full
}
