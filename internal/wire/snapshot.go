package wire

import (
	"time"

	"github.com/cove-sandbox/cove"
)

// SnapshotRequest asks for the files of a session to be saved.
type SnapshotRequest struct {
	Name string `json:"name,omitempty"`
}

// ForkRequest asks for a second session with the same files.
type ForkRequest struct {
	UserID   string            `json:"user_id,omitempty" jsonschema:"of the copy; it has none unless named"`
	ThreadID string            `json:"thread_id,omitempty" jsonschema:"of the copy; it has none unless named"`
	Metadata map[string]string `json:"metadata,omitempty" jsonschema:"labels of the copy"`
}

// ForkRequestOf returns the form of r; its idempotency key is a header.
func ForkRequestOf(r cove.ForkRequest) ForkRequest {
	return ForkRequest{UserID: r.User, ThreadID: r.Thread, Metadata: r.Metadata}
}

// Cove returns the platform's own form.
func (w ForkRequest) Cove() cove.ForkRequest {
	return cove.ForkRequest{User: w.UserID, Thread: w.ThreadID, Metadata: w.Metadata}
}

// Snapshot is the answer about saved files.
type Snapshot struct {
	SnapshotID cove.ID    `json:"snapshot_id"`
	SessionID  cove.ID    `json:"session_id"`
	Name       string     `json:"name,omitempty"`
	Provider   string     `json:"provider"`
	Template   string     `json:"template"`
	SizeBytes  cove.Bytes `json:"size_bytes"`
	Tenant     string     `json:"tenant"`
	NodeID     string     `json:"node_id,omitempty" jsonschema:"which one has the files, where there are several"`
	CreatedAt  time.Time  `json:"created_at"`
}

// SnapshotOf returns the form of s.
func SnapshotOf(s *cove.Snapshot) Snapshot {
	return Snapshot{
		SnapshotID: s.ID, SessionID: s.Session, Name: s.Name, Provider: s.Provider, Template: s.Template,
		SizeBytes: s.Size, Tenant: s.Tenant, NodeID: s.Node, CreatedAt: s.CreatedAt,
	}
}

// Cove returns the platform's own form.
func (w Snapshot) Cove() *cove.Snapshot {
	return &cove.Snapshot{
		ID: w.SnapshotID, Tenant: w.Tenant, Session: w.SessionID, Name: w.Name, Provider: w.Provider, Template: w.Template,
		Node: w.NodeID, Size: w.SizeBytes, CreatedAt: w.CreatedAt,
	}
}
