package escape

import (
	"slices"

	"github.com/cove-sandbox/cove"
)

// Arrangement is what all sandboxes of a run have, besides what single attacks
// need: none of it may be a way around a wall.
type Arrangement string

// The arrangements.
const (
	Plain      Arrangement = "plain"      // a workspace, and nothing else
	Furnished  Arrangement = "furnished"  // a workspace on disk and volumes
	Allowed    Arrangement = "allowed"    // a network with a list
	Opened     Arrangement = "opened"     // a network that is open
	Everything Arrangement = "everything" // workspace on disk, volumes and a network with a list
)

// parts are what an arrangement has.
func (a Arrangement) parts() (furnished bool, network cove.NetworkMode, ok bool) {
	switch a {
	case "", Plain:
		return false, "", true
	case Furnished:
		return true, "", true
	case Allowed:
		return false, cove.NetworkAllow, true
	case Opened:
		return false, cove.NetworkOpen, true
	case Everything:
		return true, cove.NetworkAllow, true
	}
	return false, "", false
}

// check refuses an arrangement that a provider cannot have.
func (a Arrangement) check(caps cove.Capabilities) error {
	furnished, network, ok := a.parts()
	_, disk := caps.Workspaces[cove.WorkspaceDisk]
	switch {
	case !ok:
		return cove.InvalidField("arrangement", "%.60q is unknown", string(a))
	case furnished && !(disk && caps.Volumes), network != "" && !slices.Contains(caps.Networks, network):
		return cove.Errorf(cove.Unsupported, "the provider cannot make sandboxes that are %s", a)
	}
	return nil
}

// roomForAttacker is what a workspace on disk has that the attacker fits into.
const roomForAttacker = 192 * cove.MiB

// arrange gives a sandbox what the arrangement has.
func (a *arena) arrange(s *cove.Spec) {
	furnished, network, _ := a.arrangement.parts()
	if furnished {
		s.Workspace.Kind, s.Workspace.Size = cove.WorkspaceDisk, roomForAttacker
		a.showVolumes(s)
	}
	if network == cove.NetworkAllow {
		a.allowNames(s)
	}
	if network == cove.NetworkOpen {
		s.Network = cove.Network{Mode: cove.NetworkOpen}
	}
}

// room is a kind of sandbox that several attacks need.
type room struct {
	lacks   func(*arena) string // says why there is none; "" means there is
	furnish func(*arena, *cove.Spec)
}

var (
	withVolumes = &room{
		lacks: func(a *arena) string {
			if !a.caps.Volumes {
				return "the provider has no volumes"
			}
			return ""
		},
		furnish: (*arena).showVolumes,
	}
	withList = &room{lacks: lacksNetwork(cove.NetworkAllow), furnish: (*arena).allowNames}
	withOpen = &room{lacks: lacksNetwork(cove.NetworkOpen), furnish: func(_ *arena, s *cove.Spec) { s.Network = cove.Network{Mode: cove.NetworkOpen} }}
)

func lacksNetwork(mode cove.NetworkMode) func(*arena) string {
	return func(a *arena) string {
		if !slices.Contains(a.caps.Networks, mode) || !slices.Contains(a.caps.Powers, cove.PowerEgress) {
			return "the provider has no network " + string(mode) + " that it keeps a record of"
		}
		return ""
	}
}

// lacks says what an attack needs that is not here.
func (a *arena) lacks(attack Attack) string {
	if attack.room != nil {
		if why := attack.room.lacks(a); why != "" {
			return why
		}
	}
	_, disk := a.caps.Workspaces[cove.WorkspaceDisk]
	switch {
	case attack.disk && !disk:
		return "the provider has no workspaces on disk"
	case attack.world && a.world == nil:
		return "it needs servers and names that obey the attacker, and here is only the real network"
	case attack.closed && a.arrangement == Opened:
		return "the network is open: this is what it is for"
	}
	return ""
}
