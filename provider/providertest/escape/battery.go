package escape

import (
	"context"
	"slices"

	"github.com/cove-sandbox/cove"
)

// Attack is one attempt to get out.
type Attack struct {
	Name string // lower-case words with _ between them
	Try  string // one line: what is tried
	Via  []Via  // the ways in that make sense

	// Limits must be hard for the attack to make sense: a provider that does not
	// promise to hold them is not attacked there.
	Limits []cove.Limit
	// SharedKernel says that the attack is one only on the kernel of the host:
	// in a sandbox with a kernel of its own it stays inside.
	SharedKernel bool

	room   *room            // it needs a sandbox with these things in it
	own    func(*cove.Spec) // it needs a sandbox of its own, with these changes
	coarse func(*cove.Spec) // or with these, where a provider refuses such a fine amount
	armed  bool             // with the attacker in it
	disk   bool             // its workspace is on disk
	closed bool             // it is none where the network is open
	world  bool             // it needs a World
	run    func(ctx context.Context, r *round) verdict
}

// Battery returns every attack, in the order in which they are made.
func Battery() []Attack {
	return slices.Concat(
		fileAttacks(), nameAttacks(), procAttacks(), agentAttacks(), privilegeAttacks(), callAttacks(), socketAttacks(), networkAttacks(),
		leakAttacks(), neighbourAttacks(), endingAttacks(), bombAttacks(), unchargedAttacks(), keptAttacks(), volumeAttacks(),
		diskAttacks(), egressAttacks(),
	)
}

// find returns the attacks with these names, or all.
func find(names []string) ([]Attack, error) {
	all := Battery()
	if len(names) == 0 {
		return all, nil
	}
	var found []Attack
	for _, name := range names {
		i := slices.IndexFunc(all, func(a Attack) bool { return a.Name == name })
		if i < 0 {
			return nil, cove.InvalidField("attack", "%.60q is unknown", name)
		}
		found = append(found, all[i])
	}
	return found, nil
}

// fresh is a sandbox of its own as it comes.
func fresh(*cove.Spec) {}

var (
	programs = []Via{Exec, Terminal}
	everyWay = []Via{Exec, Terminal, Solo}
	inherits = []Via{Exec, Terminal, Solo, Kernel} // where it matters what a program is started by
	byExec   = []Via{Exec}
	byFiles  = []Via{Files}
)

// native is an attack that the attacker makes alone, under the same name.
func native(name, try string) Attack {
	return Attack{Name: name, Try: try, Via: inherits, run: func(ctx context.Context, r *round) verdict {
		v, _ := r.attack(ctx, name)
		return v
	}}
}

// kernel is a native attack on the kernel of the host.
func kernel(name, try string) Attack {
	a := native(name, try)
	a.SharedKernel = true
	return a
}
