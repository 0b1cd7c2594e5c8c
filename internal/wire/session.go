package wire

import (
	"time"

	"github.com/cove-sandbox/cove"
)

// SandboxUser is the name of the user that programs run as.
const SandboxUser = "sandbox"

// OpenRequest asks for a session.
type OpenRequest struct {
	Spec

	OnFull cove.OnFull `json:"on_full,omitempty" jsonschema:"wait or reject when there is no room"`
}

// OpenRequestOf returns the form of r; its idempotency key is a header.
func OpenRequestOf(r cove.OpenRequest) OpenRequest {
	return OpenRequest{Spec: SpecOf(r.Spec), OnFull: r.OnFull}
}

// Cove returns the platform's own form.
func (w OpenRequest) Cove() (cove.OpenRequest, error) {
	spec, err := w.Spec.Cove()
	return cove.OpenRequest{Spec: spec, OnFull: w.OnFull}, err
}

// Session is the answer about a session. Its id is that of its sandbox.
type Session struct {
	SandboxID      cove.ID         `json:"sandbox_id"`
	SessionID      cove.ID         `json:"session_id"`
	Status         cove.State      `json:"status" jsonschema:"creating, running, paused, stopped, error or ended"`
	Cause          string          `json:"cause,omitempty" jsonschema:"why it is stopped, paused, in error or has ended"`
	Busy           bool            `json:"busy" jsonschema:"something runs in it now"`
	Created        bool            `json:"created" jsonschema:"this very request made it"`
	Provider       string          `json:"provider"`
	InsteadOf      string          `json:"instead_of,omitempty" jsonschema:"the provider that was to serve it and was not ready"`
	Isolation      cove.Isolation  `json:"isolation" jsonschema:"what really holds"`
	WorkspacePath  string          `json:"workspace_path"`
	WorkspaceDir   string          `json:"workspace_dir"`
	User           string          `json:"user"`
	ProjectName    string          `json:"project_name,omitempty"`
	UserID         string          `json:"user_id,omitempty"`
	ThreadID       string          `json:"thread_id,omitempty"`
	Template       string          `json:"template,omitempty"`
	Flavor         string          `json:"flavor,omitempty"`
	ResourceLimits ResourceLimits  `json:"resource_limits"`
	CreatedAt      time.Time       `json:"created_at"`
	LastActivity   time.Time       `json:"last_activity"`
	ExpiresAt      time.Time       `json:"expires_at"`
	EndedAt        time.Time       `json:"ended_at,omitzero"`
	Tenant         string          `json:"tenant"`
	Owner          string          `json:"owner"`
	NodeID         string          `json:"node_id"`
	Version        int64           `json:"version"`
	Archived       bool            `json:"archived,omitempty"`
	LastPID        cove.PID        `json:"last_pid,omitempty"`
	Trial          cove.TrialState `json:"trial,omitempty" jsonschema:"open or lost; left out where nothing is on trial"`
	Spec           Spec            `json:"spec" jsonschema:"what was asked for, with every default filled in"`
	Floors         []cove.Limit    `json:"floors,omitempty" jsonschema:"the limits that the caller set"`
}

// ResourceLimits is what a session may use.
type ResourceLimits struct {
	MemoryLimit *Quantity  `json:"memory_limit,omitempty"`
	CPULimit    *Quantity  `json:"cpu_limit,omitempty"`
	PIDsLimit   *int       `json:"pids_limit,omitempty"`
	Workspace   *Workspace `json:"workspace,omitempty"`
}

// SessionOf returns the form of s.
func SessionOf(s *cove.Session) Session {
	spec := SpecOf(s.Spec)
	return Session{
		SandboxID: s.ID, SessionID: s.ID, Status: s.State, Cause: s.Cause, Busy: s.Busy, Created: s.Created,
		Provider: s.Provider, InsteadOf: s.Instead, Isolation: s.Isolation, WorkspacePath: cove.WorkspacePath, WorkspaceDir: cove.WorkspacePath, User: SandboxUser,
		ProjectName: s.Spec.Project, UserID: s.Spec.User, ThreadID: s.Spec.Thread, Template: s.Spec.Template, Flavor: s.Spec.Flavor,
		ResourceLimits: ResourceLimits{MemoryLimit: spec.MemoryLimit, CPULimit: spec.CPULimit, PIDsLimit: spec.PIDsLimit, Workspace: spec.Workspace},
		CreatedAt:      s.CreatedAt, LastActivity: s.LastActivity, ExpiresAt: s.ExpiresAt, EndedAt: s.EndedAt,
		Tenant: s.Tenant, Owner: s.Owner, NodeID: s.Node, Version: s.Version, Archived: s.Archived, LastPID: s.LastPID, Trial: s.Trial,
		Spec: spec, Floors: s.Spec.Floors,
	}
}

// Cove returns the platform's own form.
func (w Session) Cove() (*cove.Session, error) {
	spec, err := w.Spec.Cove()
	if err != nil {
		return nil, err
	}
	spec.Floors = w.Floors
	return &cove.Session{
		ID: w.SessionID, Tenant: w.Tenant, Owner: w.Owner, Spec: spec, State: w.Status, Cause: w.Cause,
		Provider: w.Provider, Instead: w.InsteadOf, Isolation: w.Isolation, Node: w.NodeID, Version: w.Version,
		CreatedAt: w.CreatedAt, LastActivity: w.LastActivity, ExpiresAt: w.ExpiresAt, EndedAt: w.EndedAt,
		Busy: w.Busy, Created: w.Created, Archived: w.Archived, LastPID: w.LastPID, Trial: w.Trial,
	}, nil
}

// RenewRequest moves the idle deadline.
type RenewRequest struct {
	TimeoutMinutes *float64 `json:"timeout_minutes,omitempty" jsonschema:"from now; left out, the session's own timeout"`
}

// RenewRequestOf returns the form of a renewal by d.
func RenewRequestOf(d time.Duration) RenewRequest {
	return RenewRequest{TimeoutMinutes: optional(d, time.Minute)}
}

// Cove returns how far the deadline moves; 0 means the session's own timeout.
func (w RenewRequest) Cove() (time.Duration, error) {
	return span("timeout_minutes", w.TimeoutMinutes, time.Minute)
}

// Closed is the answer to the end of a session.
type Closed struct {
	SandboxID  cove.ID    `json:"sandbox_id"`
	SessionID  cove.ID    `json:"session_id"`
	Status     cove.State `json:"status"`
	SnapshotID cove.ID    `json:"snapshot_id,omitempty" jsonschema:"where its files are, if they were kept"`
}

// ClosedOf returns the form of the end of a session.
func ClosedOf(id, snapshot cove.ID) Closed {
	return Closed{SandboxID: id, SessionID: id, Status: cove.Ended, SnapshotID: snapshot}
}

// QueuePlace is the place of an OpenRequest that waits for room; 1 is next.
type QueuePlace struct {
	Position int `json:"position"`
}

// Usage is what a session consumes.
type Usage struct {
	CPUSeconds      float64    `json:"cpu_seconds"`
	MemoryBytes     cove.Bytes `json:"memory_bytes"`
	PeakMemoryBytes cove.Bytes `json:"peak_memory_bytes"`
	PIDs            int        `json:"pids"`
	DiskBytes       cove.Bytes `json:"disk_bytes"`
	Files           int64      `json:"files"`
}

// UsageOf returns the form of u.
func UsageOf(u cove.Usage) Usage {
	return Usage{
		CPUSeconds: in(u.CPU, time.Second), MemoryBytes: u.Memory, PeakMemoryBytes: u.PeakMemory,
		PIDs: u.PIDs, DiskBytes: u.Disk, Files: u.Files,
	}
}

// Cove returns the platform's own form.
func (w Usage) Cove() cove.Usage {
	return cove.Usage{
		CPU: of(w.CPUSeconds, time.Second), Memory: w.MemoryBytes, PeakMemory: w.PeakMemoryBytes,
		PIDs: w.PIDs, Disk: w.DiskBytes, Files: w.Files,
	}
}
