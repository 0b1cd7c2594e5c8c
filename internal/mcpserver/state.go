package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cove-sandbox/cove"
)

type sessionsOut struct {
	Current   string    `json:"current_session_id,omitempty" jsonschema:"the one that is used where no session_id is given; left out while there is none"`
	Sessions  []session `json:"sessions"`
	Truncated bool      `json:"truncated" jsonschema:"there are more than are shown"`
}

type session struct {
	ID           string     `json:"session_id"`
	Status       cove.State `json:"status" jsonschema:"creating, running, paused, stopped or error"`
	Busy         bool       `json:"busy,omitempty"`
	Template     string     `json:"template"`
	Flavor       string     `json:"flavor,omitempty"`
	Provider     string     `json:"provider"`
	User         string     `json:"user_id,omitempty"`
	CreatedAt    time.Time  `json:"created_at"`
	LastActivity time.Time  `json:"last_activity"`
	ExpiresAt    time.Time  `json:"expires_at"`
}

// maxSessions bounds a list of sessions, before it is cut to the budget.
const maxSessions = 200

func getSessions(ctx context.Context, c *call, _ none) (answer, error) {
	current, err := c.current(ctx)
	if err != nil {
		return answer{}, err
	}
	out := sessionsOut{Current: string(current), Sessions: []session{}}
	for s, err := range c.platform.Sessions().List(ctx, cove.SessionFilter{}) {
		if err != nil {
			return answer{}, err
		}
		out.Sessions = append(out.Sessions, session{
			ID: string(s.ID), Status: s.State, Busy: s.Busy, Template: s.Spec.Template, Flavor: s.Spec.Flavor, Provider: s.Provider,
			User: s.Spec.User, CreatedAt: s.CreatedAt.UTC(), LastActivity: s.LastActivity.UTC(), ExpiresAt: s.ExpiresAt.UTC(),
		})
		if len(out.Sessions) == 2*maxSessions { // they come oldest first
			out.Sessions, out.Truncated = slices.Delete(out.Sessions, 0, maxSessions), true
		}
	}
	slices.Reverse(out.Sessions)
	if n := within(c.face.room(), out.Sessions[:min(len(out.Sessions), maxSessions)]); n < len(out.Sessions) {
		out.Sessions, out.Truncated = out.Sessions[:n], true
	}
	return answer{value: out}, nil
}

// current is the session of calls that name none, or "".
func (c *call) current(ctx context.Context) (cove.ID, error) {
	if c.face.Session != "" {
		return c.face.Session, nil
	}
	return c.peer.current(ctx)
}

type stopIn struct {
	Session string `json:"session_id"`
}

type stopOut struct {
	Session string     `json:"session_id"`
	Status  cove.State `json:"status"`
}

func stopSession(ctx context.Context, c *call, in stopIn) (answer, error) {
	id, err := sessionID(in.Session)
	if err != nil {
		return answer{}, err
	}
	s, err := c.platform.Sessions().Stop(ctx, id)
	if err != nil {
		return answer{}, err
	}
	words := fmt.Sprintf("session %s is %s; its files are kept until %s", id, s.State, s.ExpiresAt.UTC().Format(time.RFC3339))
	return answer{value: stopOut{string(id), s.State}, show: []mcp.Content{text(words)}}, nil
}

type volumesOut struct {
	Volumes   []volume `json:"volumes"`
	Truncated bool     `json:"truncated" jsonschema:"there are more than are shown"`
}

type volume struct {
	Source string `json:"source" jsonschema:"a directory of the host"`
	Target string `json:"target,omitempty" jsonschema:"where it is in a sandbox"`
	Write  bool   `json:"write"`
}

func getVolumes(ctx context.Context, c *call, _ none) (answer, error) {
	stats, err := c.platform.Admin().Stats(ctx)
	if err != nil {
		return answer{}, err
	}
	out := volumesOut{Volumes: []volume{}}
	for _, v := range stats.Volumes {
		out.Volumes = append(out.Volumes, volume{v.Source, v.Target, v.Write})
	}
	if n := within(c.face.room(), out.Volumes); n < len(out.Volumes) {
		out.Volumes, out.Truncated = out.Volumes[:n], true
	}
	return answer{value: out}, nil
}

type statsIn struct {
	Session string `json:"session_id,omitempty" jsonschema:"whose use to show; left out, that of your own sandbox, if there is one"`
}

type statsOut struct {
	ActiveSessions int     `json:"active_sessions"`
	MaxSessions    int     `json:"max_sessions" jsonschema:"0 means no bound"`
	MemoryMB       float64 `json:"total_memory_mb" jsonschema:"promised to sessions"`
	MaxMemoryMB    float64 `json:"max_memory_mb" jsonschema:"0 means no bound"`
	CPUs           float64 `json:"total_cpus"`
	Uptime         float64 `json:"uptime_seconds"`
	PoolSize       int     `json:"pool_size"`
	PoolAvailable  int     `json:"pool_available"`
	ReuseRate      float64 `json:"session_reuse_rate"`
	Executions     int64   `json:"executions"`
	Provider       string  `json:"provider"`
	Session        *usage  `json:"session,omitempty" jsonschema:"what one session uses"`
}

type usage struct {
	ID         string  `json:"session_id"`
	CPUSeconds float64 `json:"cpu_seconds"`
	MemoryMB   float64 `json:"memory_mb"`
	PeakMB     float64 `json:"peak_memory_mb"`
	Processes  int     `json:"processes"`
	DiskMB     float64 `json:"disk_mb" jsonschema:"in the workspace"`
	Files      int64   `json:"files"`
}

func getStats(ctx context.Context, c *call, in statsIn) (answer, error) {
	id, err := c.current(ctx)
	if in.Session != "" {
		id, err = sessionID(in.Session)
	}
	if err != nil {
		return answer{}, err
	}
	s, err := c.platform.Admin().Stats(ctx)
	if err != nil {
		return answer{}, err
	}
	out := statsOut{
		ActiveSessions: s.ActiveSessions, MaxSessions: s.MaxSessions, MemoryMB: megabytes(s.Memory), MaxMemoryMB: megabytes(s.MaxMemory),
		CPUs: s.CPUs, Uptime: s.Uptime.Seconds(), PoolSize: s.PoolSize, PoolAvailable: s.PoolAvailable,
		ReuseRate: s.ReuseRate(), Executions: s.Executions, Provider: s.Provider,
	}
	if id == "" {
		return answer{value: out}, nil
	}
	u, err := c.platform.Sessions().Usage(ctx, id)
	switch {
	case err == nil:
		out.Session = &usage{
			ID: string(id), CPUSeconds: u.CPU.Seconds(), MemoryMB: megabytes(u.Memory), PeakMB: megabytes(u.PeakMemory),
			Processes: u.PIDs, DiskMB: megabytes(u.Disk), Files: u.Files,
		}
	case in.Session != "":
		return answer{}, err
	}
	return answer{value: out}, nil
}

func megabytes(b cove.Bytes) float64 { return float64(b) / float64(cove.MiB) }
