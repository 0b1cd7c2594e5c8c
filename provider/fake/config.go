package fake

import (
	"slices"
	"time"

	"github.com/cove-sandbox/cove"
)

// Config says how a fake behaves. Only Dir is needed.
type Config struct {
	// Dir holds the sandboxes and the snapshots. It is made if it is missing.
	// One provider at a time may use it.
	Dir string

	// Name is the provider's name; "" means "fake".
	Name string

	// Unready, if it is not "", is why Probe says that the host is not ready.
	Unready string

	// Templates are the names that a spec may choose from; nil means base,
	// python and node. They are all alike. The first one is the default.
	Templates []string

	// Isolation pretends a host that cannot enforce everything. The zero value
	// means hard limits and no boundary. A limit that is not Hard is not
	// enforced at all.
	Isolation cove.Isolation

	// Powers are those that the provider has; nil means all that it can have.
	Powers []cove.Power

	// Keeper holds the sandboxes with their kept programs when the provider is
	// closed or let go of, for the one that comes after it. nil: all programs end
	// with the provider, and it has no PowerResume.
	Keeper *Keeper

	// Latency is how long Create and Prepare take. Claim does not wait.
	Latency time.Duration

	// World is what a sandbox with a way out can reach: the answers of plain web
	// servers by host, or host:port where the port is not 80 or 443. nil means
	// that example.com and www.example.com greet. Nothing of the real network is
	// ever reached.
	World map[string]string

	// Hook, if it is not nil, is called at every step with the id it is about,
	// or "" where there is none. It may block; an error makes the step fail
	// with that error. The steps are
	//
	//	probe list attach
	//	create.begin create.made    before anything, and before it counts as made
	//	prepare claim               of a spare
	//	start file usage            of a live sandbox
	//	kept resume_program forget  of a program that a Keeper holds
	//	pause resume snapshot fork dial
	//	try tried changes commit discard
	//	network connections
	//	destroy.begin destroy.files before anything, and when the programs are gone
	//	remove
	Hook func(step string, id cove.ID) error
}

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = "fake"
	}
	if c.Templates == nil {
		c.Templates = []string{"base", "python", "node"}
	}
	if c.Isolation == (cove.Isolation{}) {
		c.Isolation = cove.Isolation{
			Boundary: cove.BoundaryNone, Network: cove.Hard, Memory: cove.Hard,
			CPU: cove.Hard, PIDs: cove.Hard, Disk: cove.Hard, Files: cove.Hard, Policy: cove.Soft,
		}
	}
	if c.World == nil {
		c.World = map[string]string{"example.com": "hello from outside\n", "www.example.com": "hello from outside\n"}
	}
	if c.Powers == nil {
		// One program alone would cost it no less than many.
		c.Powers = slices.DeleteFunc(cove.Powers(), func(p cove.Power) bool { return p == cove.PowerSolo })
	}
	if c.Keeper == nil {
		c.Powers = slices.DeleteFunc(slices.Clone(c.Powers), func(p cove.Power) bool { return p == cove.PowerResume })
	}
	return c
}
