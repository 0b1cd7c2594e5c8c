package wire

import (
	"time"

	"github.com/cove-sandbox/cove"
)

// Node is the answer about one server of a cluster.
type Node struct {
	NodeID         string         `json:"node_id"`
	Region         string         `json:"region,omitempty"`
	Address        string         `json:"address,omitempty" jsonschema:"where other nodes reach it; left out where it is alone"`
	Version        string         `json:"version"`
	State          cove.NodeState `json:"state" jsonschema:"ready, cordoned, away or gone; only one that is ready is given new sessions"`
	Providers      []NodeProvider `json:"providers" jsonschema:"those that are ready"`
	Templates      []string       `json:"templates"`
	MaxSessions    int            `json:"max_sessions" jsonschema:"with a sandbox at once; 0 is no bound"`
	MaxMemoryMB    float64        `json:"max_memory_mb" jsonschema:"of those; 0 is no bound"`
	ActiveSessions int            `json:"active_sessions" jsonschema:"those with a sandbox"`
	TotalMemoryMB  float64        `json:"total_memory_mb" jsonschema:"promised to those"`
	PoolAvailable  int            `json:"pool_available" jsonschema:"prepared sandboxes that wait"`
	Sessions       int            `json:"sessions" jsonschema:"that it answers for, stopped ones too"`
	StartedAt      time.Time      `json:"started_at"`
	SeenAt         time.Time      `json:"seen_at" jsonschema:"when it was last heard of"`
}

// NodeProvider is a provider of a node.
type NodeProvider struct {
	Name     string        `json:"name"`
	Boundary cove.Boundary `json:"boundary" jsonschema:"what stands between its sandboxes and the host"`
	Default  bool          `json:"default,omitempty"`
}

// NodeOf returns the form of n.
func NodeOf(n cove.Node) Node {
	providers := make([]NodeProvider, len(n.Providers))
	for i, p := range n.Providers {
		providers[i] = NodeProvider(p)
	}
	return Node{
		NodeID: n.ID, Region: n.Region, Address: n.Address, Version: n.Version, State: n.State,
		Providers: providers, Templates: append([]string{}, n.Templates...),
		MaxSessions: n.Capacity.Sessions, MaxMemoryMB: megabytes(n.Capacity.Memory),
		ActiveSessions: n.Used.Sessions, TotalMemoryMB: megabytes(n.Used.Memory),
		PoolAvailable: n.Pool, Sessions: n.Sessions, StartedAt: n.StartedAt, SeenAt: n.SeenAt,
	}
}

// Cove returns the platform's own form.
func (w Node) Cove() cove.Node {
	providers := make([]cove.NodeProvider, len(w.Providers))
	for i, p := range w.Providers {
		providers[i] = cove.NodeProvider(p)
	}
	return cove.Node{
		ID: w.NodeID, Region: w.Region, Address: w.Address, Version: w.Version, State: w.State,
		Providers: providers, Templates: w.Templates,
		Capacity: cove.Bounds{Sessions: w.MaxSessions, Memory: fromMegabytes(w.MaxMemoryMB)},
		Used:     cove.Bounds{Sessions: w.ActiveSessions, Memory: fromMegabytes(w.TotalMemoryMB)},
		Pool:     w.PoolAvailable, Sessions: w.Sessions, StartedAt: w.StartedAt, SeenAt: w.SeenAt,
	}
}
