//go:build linux

package microsandbox

import (
	"context"
	"os"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
)

// probeTime bounds a probe, whatever does not answer.
const probeTime = 8 * time.Second

// Probe implements [cove.Provider].
func (p *Provider) Probe(ctx context.Context) (cove.Capabilities, error) {
	if err := p.open(ctx); err != nil {
		return cove.Capabilities{}, err
	}
	bounded, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	t, err := p.find(bounded)
	if ctx.Err() != nil {
		return cove.Capabilities{}, ctx.Err()
	}
	if err == nil {
		_, err = p.agent()
	}
	if err != nil {
		return cove.Capabilities{Why: cove.MessageOf(err), Remedy: cove.RemedyOf(err), Isolation: p.capabilities(p.all[0], nil).Isolation}, nil
	}
	p.mu.Lock()
	p.chosen = t
	p.mu.Unlock()
	return p.capabilities(t, t.fence()), nil
}

// template is the one there is: the image.
const template = "base"

// capabilities are those of sandboxes by one transport, with a fence that it told of.
func (p *Provider) capabilities(t transport, fence *cove.Isolation) cove.Capabilities {
	modes, network := t.networks()
	c := cove.Capabilities{
		Ready: true,
		Isolation: cove.Isolation{
			Boundary: cove.BoundaryMicroVM, Network: network, Memory: cove.Hard, CPU: cove.Hard, PIDs: cove.Hard, Disk: cove.Hard, Files: cove.Hard, Policy: cove.Soft,
		},
		Workspaces: map[cove.WorkspaceKind]cove.Quota{
			cove.WorkspaceMemory: {Bytes: cove.Hard, Files: cove.Hard},
			cove.WorkspaceDisk:   {Bytes: cove.Absent, Files: cove.Absent},
		},
		Networks: modes, Templates: []string{template},
		Powers: []cove.Power{cove.PowerDial, cove.PowerTerminal, cove.PowerAttach, cove.PowerResume},
		Notes: []string{
			"a machine has whole CPUs: a fraction is rounded down, and is never less than one",
			"a workspace in memory takes its room from the machine's memory",
		},
	}
	if t.kind() == transportRPC {
		c.Notes = append(c.Notes, "this microsandbox server gives every machine its network, and nothing of it can be taken away: only mode open is offered")
	}
	if fence == nil {
		return c
	}
	// Nobody is root there: what only root can bound is bounded as that server does it.
	c.Isolation = cove.Isolation{
		Boundary: fence.Boundary, Network: network, Memory: fence.Memory, CPU: fence.CPU, PIDs: cove.Absent, Disk: cove.Absent, Files: cove.Absent, Policy: cove.Soft,
	}
	c.Workspaces = map[cove.WorkspaceKind]cove.Quota{cove.WorkspaceMemory: {Bytes: cove.Absent, Files: cove.Absent}}
	c.Notes = append(c.Notes, "the server is Cove: its settings bound processes and workspaces, programs are the user of the agent and can end it, and what ran is lost then")
	return c
}

// agent returns the executable that is put into machines.
func (p *Provider) agent() ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.image != nil {
		return p.image, nil
	}
	path := p.cfg.Agent
	if path == "" {
		var err error
		if path, err = guest.Executable(); err != nil {
			return nil, err
		}
		if path == guest.Self {
			return nil, cove.Errorf(cove.Unavailable, "this build has no agent that could be put into a machine").
				Remedy("build it with make build")
		}
	}
	content, err := os.ReadFile(path) //nolint:gosec // the operator's own setting, or our own memory
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the agent for machines cannot be read").Remedy("build cove with make build")
	}
	p.image = content
	return content, nil
}
