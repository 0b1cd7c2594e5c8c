package escape

import (
	"context"

	"github.com/cove-sandbox/cove"
)

// networkAttacks are for a sandbox without a network. One with a network must stop
// them, too.
func networkAttacks() []Attack {
	attacks := []Attack{
		called("host_loopback", "call listeners on the host's loopback, by TCP and UDP"),
		called("host_sockets", "call the host's unix sockets, by path and through /proc"),
		called("host_abstract_sockets", "call the host's abstract unix socket"),
		native("private_addresses", "call the host's own addresses and private networks"),
		native("metadata_addresses", "call the metadata services of clouds"),
		native("public_addresses", "call the internet without being given a network"),
	}
	for i := range attacks {
		attacks[i].Limits = []cove.Limit{cove.LimitNetwork}
		attacks[i].closed = attacks[i].Name == "public_addresses"
	}
	return attacks
}

// called is a native attack after which nobody must have called at the host.
func called(name, try string) Attack {
	a := native(name, try)
	a.run = func(ctx context.Context, r *round) verdict {
		r.uncalled()
		v, _ := r.attack(ctx, name)
		return v.also(r.uncalled())
	}
	return a
}
