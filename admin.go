package cove

import (
	"context"
	"iter"
	"time"
)

// Admin is what an operator does: keys, tenants, numbers, maintenance, journal.
type Admin interface {
	// CreateKey returns the new key and its secret, which is shown this once.
	CreateKey(ctx context.Context, req KeyRequest) (*Key, string, error)
	Keys(ctx context.Context) iter.Seq2[*Key, error]
	// RevokeKey makes a key open nothing any more. A server ends what its callers
	// wait for; background programs go on.
	RevokeKey(ctx context.Context, id ID) error
	// Tenant reports on a tenant. The caller's own needs no more than ScopeRead.
	Tenant(ctx context.Context, name string) (*TenantReport, error)
	SetTenant(ctx context.Context, t Tenant) error
	Stats(ctx context.Context) (*Stats, error)
	Tasks(ctx context.Context) ([]TaskStatus, error)
	// ControlTask does one thing to one task, or to all when name is "".
	ControlTask(ctx context.Context, name string, do TaskVerb) ([]TaskStatus, error)
	// Events reads the journal. A caller that is no admin, but holds ScopeRead, may
	// see the lines of its own tenant, and gets them where f names none.
	Events(ctx context.Context, f EventFilter) iter.Seq2[Event, error]
	Doctor(ctx context.Context) ([]ProviderReport, error)
}

// TenantReport is a tenant, its bounds, what it holds now and what it has used
// in all.
type TenantReport struct {
	Tenant

	Sessions int         `json:"sessions"`
	Memory   Bytes       `json:"memory"`
	Disk     DiskUse     `json:"disk"`
	MaxDisk  Bytes       `json:"max_disk,omitempty"` // the bound that holds for Disk; 0 means none
	Used     Consumption `json:"used"`
	Cost     *Cost       `json:"cost,omitempty"` // of Used; nil where the operator named no prices
}

// Stats is the state of the platform in numbers. A caller that is no admin
// sees the numbers of its own tenant.
type Stats struct {
	ActiveSessions   int            `json:"active_sessions"`
	MaxSessions      int            `json:"max_sessions"`
	SessionsByFlavor map[string]int `json:"sessions_by_flavor"`
	SessionsByState  map[State]int  `json:"sessions_by_state"`
	Memory           Bytes          `json:"memory"`
	MaxMemory        Bytes          `json:"max_memory"`
	CPUs             float64        `json:"total_cpus"`
	Uptime           time.Duration  `json:"uptime"`
	PoolSize         int            `json:"pool_size"`
	PoolAvailable    int            `json:"pool_available"`
	Queued           int            `json:"queued"`
	Opened           int64          `json:"opened"` // Open calls that succeeded
	Reused           int64          `json:"reused"` // those that found a live session
	Executions       int64          `json:"executions"`
	Runs             int            `json:"active_runs"` // questions to data that go on
	Volumes          []Volume       `json:"volumes"`
	Provider         string         `json:"provider"`
	Node             string         `json:"node_id"`
	// ByProvider is what the sessions of each provider hold and use; those without
	// a session are not in it.
	ByProvider map[string]*ProviderShare `json:"by_provider"`
}

// ProviderShare is how many sessions one provider has, what those with a sandbox
// were promised, and what they use of it. Use is measured in the background while
// somebody asks for it, so an answer is a little old, and the first after a while
// has none: Measured says of how many sessions it is, and MeasuredAt how old.
type ProviderShare struct {
	Active     int           `json:"active"` // sessions with a sandbox, as those below
	ByState    map[State]int `json:"by_state"`
	Memory     Bytes         `json:"memory"` // promised
	CPUs       float64       `json:"cpus"`   // promised
	UsedMemory Bytes         `json:"used_memory"`
	UsedCPUs   float64       `json:"used_cpus"` // CPU time in a second, between the last two measurements
	Measured   int           `json:"measured"`
	MeasuredAt time.Time     `json:"measured_at,omitzero"` // the oldest that counts; zero where there is none
}

// ReuseRate is the part of Open calls that found a live session.
func (s Stats) ReuseRate() float64 {
	if s.Opened == 0 {
		return 0
	}
	return float64(s.Reused) / float64(s.Opened)
}

// TaskStatus describes one background task.
type TaskStatus struct {
	Name      string        `json:"name"` // expiry, orphans, pool, room, records, usage, and volumes and artifacts where some are kept
	State     TaskState     `json:"state"`
	Interval  time.Duration `json:"interval"`
	Runs      int64         `json:"runs"`
	Done      int64         `json:"done"`      // things the task has dealt with, in all
	LastDone  int64         `json:"last_done"` // and in its last run
	LastRun   time.Time     `json:"last_run,omitzero"`
	LastError string        `json:"last_error,omitempty"` // safe to show
}

// TaskState is what a background task is doing.
type TaskState string

// The states of a task.
const (
	TaskWaiting TaskState = "waiting"
	TaskRunning TaskState = "running"
	TaskPaused  TaskState = "paused"
	TaskStopped TaskState = "stopped"
)

// TaskVerb is what can be done to a task.
type TaskVerb string

// What can be done to a task. RunTask runs it now, also when it is paused, and
// waits for it; RestartTask ends the run under way and starts over.
const (
	PauseTask   TaskVerb = "pause"
	ResumeTask  TaskVerb = "resume"
	RunTask     TaskVerb = "run"
	RestartTask TaskVerb = "restart"
)

// ProviderReport is one row of cove doctor.
type ProviderReport struct {
	Name         string       `json:"name"`
	Default      bool         `json:"default"`
	Fallback     int          `json:"fallback,omitempty"` // its place in the order of those that serve where the default is not ready, from 1
	Capabilities Capabilities `json:"capabilities"`
}
