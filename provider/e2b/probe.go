//go:build linux

package e2b

import (
	"context"
	"fmt"
	"time"

	"github.com/cove-sandbox/cove"
)

// probeTime is what a look at E2B may take.
const probeTime = 3 * time.Second

// Probe implements [cove.Provider].
func (p *Provider) Probe(ctx context.Context) (cove.Capabilities, error) {
	caps := p.caps()
	if p.cfg.APIKey == "" {
		return notReady(caps, "E2B_API_KEY is not set", "set E2B_API_KEY to a key of your team at E2B"), nil
	}
	short, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	_, err := p.api.list(short, nil, 1)
	if err == nil {
		_, err = p.image() // without an agent no machine can be used
	}
	switch {
	case err == nil:
		return caps, nil
	case ctx.Err() != nil:
		return caps, ctx.Err()
	case short.Err() != nil:
		err = unreachable(context.WithoutCancel(ctx), p.api.whom, err)
	}
	return notReady(caps, cove.MessageOf(err), cove.RemedyOf(err)), nil
}

func notReady(c cove.Capabilities, why, remedy string) cove.Capabilities {
	c.Ready, c.Why, c.Remedy = false, why, remedy
	return c
}

// caps is what holds for every machine at E2B.
func (p *Provider) caps() cove.Capabilities {
	c := cove.Capabilities{
		Ready: true,
		Isolation: cove.Isolation{
			Boundary: cove.BoundaryRemote, Network: cove.Hard,
			Memory: cove.Absent, CPU: cove.Absent, PIDs: cove.Absent, Disk: cove.Absent, Files: cove.Absent, Policy: cove.Soft,
		},
		Workspaces: map[cove.WorkspaceKind]cove.Quota{
			cove.WorkspaceMemory: {Bytes: cove.Absent, Files: cove.Absent},
			cove.WorkspaceDisk:   {Bytes: cove.Absent, Files: cove.Absent},
		},
		Networks:  []cove.NetworkMode{cove.NetworkNone, cove.NetworkOpen},
		Templates: []string{template},
		Powers:    []cove.Power{cove.PowerDial, cove.PowerTerminal, cove.PowerAttach},
		Notes: []string{
			fmt.Sprintf("sandboxes are machines of the template %s at %s: its CPUs, its memory and its disk, whatever is asked for", p.cfg.Template, p.cfg.Domain),
			"E2B keeps the network of a sandbox closed; whether it does, Cove knows only from what E2B says",
			"workspaces of both kinds are on the disk of the machine",
		},
	}
	if p.cfg.CPUHour == 0 && p.cfg.MemoryHour == 0 {
		c.Notes = append(c.Notes, "no prices are set, so answers have no estimate of what a run costs; set E2B_PRICE_CPU_HOUR and E2B_PRICE_MEMORY_GB_HOUR")
	}
	return c
}
