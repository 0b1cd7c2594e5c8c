package cove

import (
	"context"
	"iter"
	"net"
	"time"
)

// Platform is the one surface of Cove, in a few small parts. The engine
// implements it in process and the client over HTTP; REST, MCP, CLI and
// console are translations of it and hold no logic of their own.
//
// A Platform is bound to one caller when it is made (inprocess.Open, client.New):
// identity never travels in a context. Another tenant's things are NotFound.
//
// Every method of every part passes policy and is journaled. The guard test of
// the engine walks this interface and fails for a method that is not.
type Platform interface {
	Sessions() Sessions
	Processes(id ID) Processes
	Files(id ID) Files
	Contexts(id ID) Contexts
	Ports(id ID) Ports
	Trials(id ID) Trials
	Snapshots() Snapshots
	Volumes() Volumes
	Runs() Runs
	Datasets() Datasets
	Chats() Chats
	Templates() Templates
	Links() Links
	Admin() Admin
	Nodes() Nodes
}

// Ports reaches what listens inside a session.
type Ports interface {
	// Dial connects to a port inside. Nobody listening is Unavailable.
	Dial(ctx context.Context, port int) (net.Conn, error)
}

// Snapshots saves, doubles and holds sessions.
type Snapshots interface {
	// Pause freezes all that runs in a session; Resume lets it go on.
	Pause(ctx context.Context, id ID) (*Session, error)
	Resume(ctx context.Context, id ID) (*Session, error)
	// Snapshot saves the files of a session. Opening with Spec.Snapshot starts
	// from them.
	Snapshot(ctx context.Context, id ID, req SnapshotRequest) (*Snapshot, error)
	// Fork opens a second session with the same spec and files. The copy has no
	// user and thread unless as names them.
	Fork(ctx context.Context, id ID, as ForkRequest) (*Session, error)
	List(ctx context.Context, f SnapshotFilter) iter.Seq2[*Snapshot, error]
	Delete(ctx context.Context, snapshot ID) error
}

// Snapshot is the record of saved files.
type Snapshot struct {
	ID        ID        `json:"id"`
	Tenant    string    `json:"tenant"`
	Session   ID        `json:"session_id"`
	Name      string    `json:"name,omitempty"`
	Node      string    `json:"node,omitempty"` // which one has the files, where there are several
	Provider  string    `json:"provider"`
	Template  string    `json:"template"`
	Size      Bytes     `json:"size"`
	Disk      Bytes     `json:"disk,omitempty"` // what it counts for in [Bounds]; in the record only
	CreatedAt time.Time `json:"created_at"`
	// Pending is one that is being made or removed. Nobody is shown it: it says
	// after a crash what is to be removed.
	Pending bool `json:"pending,omitempty"`
}

// SnapshotRequest says what a snapshot is known by.
type SnapshotRequest struct {
	Name           string
	IdempotencyKey string // the same key and request give the same snapshot
}

// ForkRequest says what is different about a copy.
type ForkRequest struct {
	User, Thread   string
	Metadata       map[string]string
	IdempotencyKey string // the same key and request give the same copy
}

// SnapshotFilter selects snapshots; zero fields select all.
type SnapshotFilter struct {
	Tenant  string // set by the engine
	Session ID
	After   ID
	Limit   int
}
