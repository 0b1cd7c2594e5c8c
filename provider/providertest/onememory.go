package providertest

import (
	"context"
	"testing"

	"github.com/cove-sandbox/cove"
)

// OneMemory makes sandboxes whose workspace in memory has the usual size and a large one,
// and calls check while each is there, with the memory that was asked for.
func OneMemory(t *testing.T, p cove.Provider, check func(memory cove.Bytes)) {
	t.Helper()
	Ready(t, p)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	const memory = 256 * cove.MiB
	for name, w := range map[string]cove.Workspace{"usual": {}, "large": {Size: 160 * cove.MiB}} {
		s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Resources: cove.Resources{Memory: memory}, Workspace: w})
		if err != nil {
			t.Fatal(err)
		}
		if s.Isolation().Memory == cove.Hard {
			check(memory)
		} else {
			t.Logf("%s: the bound on memory is %s", name, s.Isolation().Memory)
		}
		if err := s.Destroy(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}
