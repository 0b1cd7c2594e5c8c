//go:build linux

package local_test

import (
	"context"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

// networked gives every sandbox a network.
type networked struct {
	cove.Provider

	network cove.Network
}

func (n networked) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	spec.Network = n.network
	return n.Provider.Create(ctx, id, spec)
}

// answered are the attacks that take an answer for a way through. Of an open
// network every address is in the sandbox itself, where its own kernel answers;
// TestEgressOpen says what lies behind.
var answered = map[string]bool{"private_addresses": true, "metadata_addresses": true, "public_addresses": true}

// TestEgressBattery makes all attacks from sandboxes that have a network: it must
// be no way around any other wall.
func TestEgressBattery(t *testing.T) {
	p := openOut(t, nil)
	for name, n := range map[string]cove.Network{
		"allow": {Mode: cove.NetworkAllow, Allow: []string{"good.test"}, Secrets: []string{"key"}},
		"open":  {Mode: cove.NetworkOpen},
	} {
		t.Run(name, func(t *testing.T) {
			tried := 0
			for f, err := range escape.Run(t.Context(), networked{p, n}, escape.Options{Via: []escape.Via{escape.Exec}}) {
				if err != nil {
					t.Fatal(err)
				}
				if f.GotThrough() && !(n.Mode == cove.NetworkOpen && answered[f.Attack]) {
					t.Errorf("%+v", f)
				}
				if f.Skipped == "" {
					tried++
				}
			}
			if tried < 30 {
				t.Errorf("only %d attacks were made", tried)
			}
		})
	}
}
