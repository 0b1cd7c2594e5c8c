package engine

import (
	"time"

	"github.com/cove-sandbox/cove"
)

// stats counts what a principal may see: an operator everything, others the
// sessions of their tenant.
func (e *Engine) stats(p cove.Principal) *cove.Stats {
	all := p.May(cove.ScopeAdmin)
	of := p.Tenant
	if all {
		of = ""
	}
	done := e.tenants.done(of)
	s := &cove.Stats{
		MaxSessions: e.cfg.MaxSessions, MaxMemory: e.cfg.MaxMemory, Uptime: time.Since(e.began),
		SessionsByFlavor: map[string]int{}, SessionsByState: map[cove.State]int{},
		Opened: done.opened, Reused: done.reused, Executions: done.execs,
		Runs: e.runs.count(of), Volumes: e.cfg.Shared, Provider: e.cfg.Provider, Node: e.cfg.Node,
		ByProvider: map[string]*cove.ProviderShare{},
	}
	if small := e.cfg.resources(cove.Spec{}).Memory; s.MaxSessions == 0 && small > 0 {
		s.MaxSessions = int(s.MaxMemory / small) // as many of the default flavor as memory allows
	}
	now := time.Now()
	s.PoolSize, s.PoolAvailable = e.pool.Size()
	_, _, s.Queued = e.gate.Used()
	s.Queued += int(e.waitOthers.Load())
	for _, l := range e.snapshotLeases() {
		rec := l.view()
		if !all && rec.Tenant != p.Tenant {
			continue
		}
		s.SessionsByState[rec.State]++
		share, known := s.ByProvider[rec.Provider]
		if !known {
			share = &cove.ProviderShare{ByState: map[cove.State]int{}}
			if rec.Provider != "" { // one that waits for room has none yet
				s.ByProvider[rec.Provider] = share
			}
		}
		share.ByState[rec.State]++
		if rec.State != cove.Running && rec.State != cove.Paused && rec.State != cove.Creating {
			continue
		}
		s.ActiveSessions++
		s.SessionsByFlavor[rec.Spec.Flavor]++
		s.Memory += rec.Spec.Resources.Memory
		s.CPUs += rec.Spec.Resources.CPUs
		share.Active++
		share.Memory += rec.Spec.Resources.Memory
		share.CPUs += rec.Spec.Resources.CPUs
		l.addSample(share, now)
	}
	if all {
		s.Memory += e.rooms.memory() + e.places.memory()
	}
	return s
}
