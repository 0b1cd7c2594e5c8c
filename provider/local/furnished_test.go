//go:build linux

package local_test

import (
	"context"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/providertest"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

// furnished is a provider whose sandboxes have a workspace on disk and a volume.
// One that can be written to is the kind of mount that the battery looks for.
type furnished struct {
	cove.Provider

	volume string
}

func (p furnished) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	spec.Workspace.Kind = cove.WorkspaceDisk
	if spec.Workspace.Size == 0 {
		spec.Workspace.Size = 64 * cove.MiB
	}
	spec.Volumes = append(spec.Volumes, cove.Volume{Source: p.volume, Target: "/srv/read"})
	return p.Provider.Create(ctx, id, spec)
}

// TestEscapesFurnished: all that a sandbox can have is no way out of it.
func TestEscapesFurnished(t *testing.T) {
	tier.Full(t, "TestEgressBattery runs all attacks where sandboxes have a disk, volumes and a network")
	providertest.Run(t, func(t *testing.T) cove.Provider {
		return furnished{onDisk{open(t)}, offered(t, "f")}
	}, "isolation")
	p := open(t)
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	var names []string
	for _, a := range escape.Battery() {
		// Those that bring their own workspace or network are made elsewhere.
		if !strings.HasPrefix(a.Name, "egress_") && !strings.HasPrefix(a.Name, "workspace_") {
			names = append(names, a.Name)
		}
	}
	if tried := withstand(t, p, escape.Options{Only: names, Arrangement: escape.Furnished}); tried < 100 {
		t.Errorf("only %d attempts were made", tried)
	}
}

// TestEscapesFurnishedUser is the same as an ordinary user.
func TestEscapesFurnishedUser(t *testing.T) {
	tier.Full(t, "TestConformance runs all attacks as root")
	linuxtest.Again(t, "^TestEscapesFurnished$")
}
