package wire

import (
	"time"

	"github.com/cove-sandbox/cove"
)

// Stats is the state of the platform in numbers.
type Stats struct {
	ActiveSessions   int                `json:"active_sessions"`
	MaxSessions      int                `json:"max_sessions"`
	SessionsByFlavor map[string]int     `json:"sessions_by_flavor"`
	SessionsByStatus map[cove.State]int `json:"sessions_by_status"`
	TotalMemoryMB    float64            `json:"total_memory_mb" jsonschema:"promised to sessions"`
	MaxMemoryMB      float64            `json:"max_memory_mb"`
	TotalCPUs        float64            `json:"total_cpus"`
	UptimeSeconds    float64            `json:"uptime_seconds"`
	PoolSize         int                `json:"pool_size"`
	PoolAvailable    int                `json:"pool_available"`
	Queued           int                `json:"queued" jsonschema:"callers that wait for room"`
	SessionsOpened   int64              `json:"sessions_opened"`
	SessionsReused   int64              `json:"sessions_reused"`
	SessionReuseRate float64            `json:"session_reuse_rate"`
	Executions       int64              `json:"executions"`
	ActiveRuns       int                `json:"active_runs" jsonschema:"questions to data that go on"`
	Volumes          []cove.Volume      `json:"volumes"`
	Provider         string             `json:"provider"`
	NodeID           string             `json:"node_id"`
	// ByProvider is by the names of providers.
	ByProvider map[string]ProviderShare `json:"by_provider" jsonschema:"what the sessions of each provider were promised and use"`
}

// ProviderShare is what the sessions of one provider were promised, and use.
type ProviderShare struct {
	ActiveSessions   int                `json:"active_sessions" jsonschema:"those with a sandbox"`
	SessionsByStatus map[cove.State]int `json:"sessions_by_status"`
	TotalMemoryMB    float64            `json:"total_memory_mb" jsonschema:"promised to its sessions"`
	TotalCPUs        float64            `json:"total_cpus" jsonschema:"promised to its sessions"`
	UsedMemoryMB     float64            `json:"used_memory_mb" jsonschema:"used by those that were measured lately"`
	UsedCPUs         float64            `json:"used_cpus" jsonschema:"CPU time in a second, of those that were measured lately"`
	MeasuredSessions int                `json:"measured_sessions" jsonschema:"how many were measured lately; it is done while somebody asks"`
	MeasuredAt       time.Time          `json:"measured_at,omitzero" jsonschema:"the oldest measurement that counts"`
}

// StatsOf returns the form of s.
func StatsOf(s *cove.Stats) Stats {
	shares := make(map[string]ProviderShare, len(s.ByProvider))
	for name, p := range s.ByProvider {
		shares[name] = ProviderShare{
			ActiveSessions: p.Active, SessionsByStatus: p.ByState, TotalMemoryMB: megabytes(p.Memory), TotalCPUs: p.CPUs,
			UsedMemoryMB: megabytes(p.UsedMemory), UsedCPUs: p.UsedCPUs, MeasuredSessions: p.Measured, MeasuredAt: p.MeasuredAt,
		}
	}
	return Stats{
		ActiveSessions: s.ActiveSessions, MaxSessions: s.MaxSessions, SessionsByFlavor: s.SessionsByFlavor, SessionsByStatus: s.SessionsByState,
		TotalMemoryMB: megabytes(s.Memory), MaxMemoryMB: megabytes(s.MaxMemory), TotalCPUs: s.CPUs, UptimeSeconds: in(s.Uptime, time.Second),
		PoolSize: s.PoolSize, PoolAvailable: s.PoolAvailable, Queued: s.Queued, SessionsOpened: s.Opened, SessionsReused: s.Reused,
		SessionReuseRate: s.ReuseRate(), Executions: s.Executions, ActiveRuns: s.Runs, Volumes: append([]cove.Volume{}, s.Volumes...), Provider: s.Provider, NodeID: s.Node,
		ByProvider: shares,
	}
}

// Cove returns the platform's own form.
func (w Stats) Cove() *cove.Stats {
	shares := make(map[string]*cove.ProviderShare, len(w.ByProvider))
	for name, p := range w.ByProvider {
		shares[name] = &cove.ProviderShare{
			Active: p.ActiveSessions, ByState: p.SessionsByStatus, Memory: fromMegabytes(p.TotalMemoryMB), CPUs: p.TotalCPUs,
			UsedMemory: fromMegabytes(p.UsedMemoryMB), UsedCPUs: p.UsedCPUs, Measured: p.MeasuredSessions, MeasuredAt: p.MeasuredAt,
		}
	}
	return &cove.Stats{
		ActiveSessions: w.ActiveSessions, MaxSessions: w.MaxSessions, SessionsByFlavor: w.SessionsByFlavor, SessionsByState: w.SessionsByStatus,
		Memory: fromMegabytes(w.TotalMemoryMB), MaxMemory: fromMegabytes(w.MaxMemoryMB), CPUs: w.TotalCPUs, Uptime: of(w.UptimeSeconds, time.Second),
		PoolSize: w.PoolSize, PoolAvailable: w.PoolAvailable, Queued: w.Queued, Opened: w.SessionsOpened, Reused: w.SessionsReused,
		Executions: w.Executions, Runs: w.ActiveRuns, Volumes: w.Volumes, Provider: w.Provider, Node: w.NodeID,
		ByProvider: shares,
	}
}

// Health is the answer to whoever asks whether the server is well. It is open to all:
// numbers about what a server does are in Stats.
type Health struct {
	Status         string `json:"status" jsonschema:"healthy, or what is the matter"`
	Message        string `json:"message"`
	Version        string `json:"version,omitempty"`
	NodeID         string `json:"node_id,omitempty" jsonschema:"of a node of a cluster"`
	RedisConnected bool   `json:"redis_connected"`
}

// Healthy is the status of a server that takes requests, and Recovering that of one that
// takes none until its operator decides what becomes of what it found.
const (
	Healthy    = "healthy"
	Recovering = "recovery"
)
