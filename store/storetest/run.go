package storetest

import (
	"testing"

	"github.com/cove-sandbox/cove"
)

type testCase struct {
	name string
	run  func(*testing.T, cove.Store)
}

// noCase is the failure of a suite that executed none.
const noCase = "the suite ran no case: the pattern of -run or -skip leaves none"

// Run tests a store. Open returns an empty one, fresh for each call; Run closes
// it. A run in which no case started fails.
func Run(t *testing.T, open func(t *testing.T) cove.Store) {
	started := 0
	for _, group := range []struct {
		name  string
		cases []testCase
	}{
		{"Session", sessionCases},
		{"List", listCases},
		{"Key", keyCases},
		{"Tenant", tenantCases},
		{"Snapshot", snapshotCases},
		{"Volume", volumeCases},
		{"Run", runCases},
		{"Message", messageCases},
		{"Claim", claimCases},
		{"Hostile", hostileCases},
		{"Call", callCases},
		{"Race", raceCases},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				t.Run(c.name, func(t *testing.T) {
					started++
					s := open(t)
					t.Cleanup(func() { ok(t, s.Close()) })
					c.run(t, s)
				})
			}
		})
	}
	t.Run("Model", func(t *testing.T) {
		started++
		model(t, open)
	})
	t.Run("Samples", func(t *testing.T) {
		started++
		samplesAreFull(t)
	})
	if started == 0 {
		t.Error(noCase)
	}
}
