package cove

import (
	"context"
	"iter"
	"time"
)

// Nodes is the servers of a cluster. A server that has no others is the only one
// in its list, and can be neither drained nor uncordoned: Unsupported.
type Nodes interface {
	// List returns every node that is there, or was a while ago, by its name.
	List(ctx context.Context) ([]Node, error)
	// Drain has a node take no new sessions and give away those that can move. It
	// returns at once; List says how far it is.
	Drain(ctx context.Context, node string) (*Node, error)
	// Uncordon lets a node take new sessions again.
	Uncordon(ctx context.Context, node string) (*Node, error)
}

// Node is one server of a cluster, as it said of itself when it was last heard of.
type Node struct {
	ID        string         `json:"id"`
	Region    string         `json:"region,omitempty"`
	Address   string         `json:"address"` // where other nodes reach it
	Version   string         `json:"version"`
	State     NodeState      `json:"state"`
	Providers []NodeProvider `json:"providers"` // those that are ready
	Templates []string       `json:"templates"`
	Capacity  Bounds         `json:"capacity"` // Sessions and Memory; 0 is no bound
	Used      Bounds         `json:"used"`
	Pool      int            `json:"pool"`     // spares that wait
	Sessions  int            `json:"sessions"` // that it answers for, stopped ones too
	StartedAt time.Time      `json:"started_at"`
	SeenAt    time.Time      `json:"seen_at"` // by the directory's clock
}

// NodeProvider is a provider of a node.
type NodeProvider struct {
	Name     string   `json:"name"`
	Boundary Boundary `json:"boundary"`
	Default  bool     `json:"default,omitempty"`
}

// NodeState is how a node is, as far as the directory knows.
type NodeState string

// The states of a node. Only one that is ready is given new sessions.
const (
	NodeReady    NodeState = "ready"
	NodeCordoned NodeState = "cordoned" // it serves what it has, and is given nothing new
	NodeAway     NodeState = "away"     // it said that it will be back shortly
	NodeGone     NodeState = "gone"     // its lease ran out
)

// NodeStates returns every state of a node.
func NodeStates() []NodeState { return []NodeState{NodeReady, NodeCordoned, NodeAway, NodeGone} }

// Directory is a Store that the nodes of a cluster share, and what they know of
// each other. One that was opened for a node writes only while that node's lease
// is good: a node that lost it is Unavailable with ReasonFenced, whatever it
// writes. A directory that cannot be reached is Unavailable with
// ReasonNoDirectory.
//
// Of sessions, a node writes only those that are its own or nobody's. PutSession
// is Conflict with ReasonElsewhere where another live session of the same tenant,
// user and thread is there, and Exhausted with ReasonTenantQuota or ReasonKeyQuota
// where a session with a sandbox would be one too many in the whole cluster. While
// the directory settles that is not known, and the error is Unavailable with
// ReasonNoDirectory.
type Directory interface {
	Store
	Membership

	// Locate is GetSession. A session whose node is gone is ended by it, with the
	// cause ReasonNodeLost, before it is returned; or it is stopped and nobody's, where
	// its files are kept for every node.
	Locate(ctx context.Context, id ID) (*Session, error)
	// Holder returns the live session of a user and thread, in the same way.
	Holder(ctx context.Context, tenant, user, thread string) (*Session, error) // NotFound
	// Adopt makes a session that is nobody's this node's own. It is Conflict where
	// somebody was faster.
	Adopt(ctx context.Context, id ID) (*Session, error)
	// Restore puts a session of this node's back as it is here, after the directory
	// lost what it knew. It is NotFound where the session was ended or moved
	// meanwhile, and Conflict where another one holds its user and thread. That a
	// directory forgot who had taken a session with a sandbox is no move.
	Restore(ctx context.Context, s *Session) error
	// Room reports whether one more session with a sandbox like this one's would be one
	// too many in the whole cluster, as PutSession does for one that is to have one.
	Room(ctx context.Context, s *Session) error // Exhausted
	// Unowned returns the sessions that are nobody's, by their ids.
	Unowned(ctx context.Context) iter.Seq2[*Session, error]
	// Sweep ends the sessions of nodes that are gone, and returns how many.
	Sweep(ctx context.Context) (int64, error)

	// Lock waits until nobody else in the cluster holds a name. What a node that is
	// gone holds, nobody holds.
	Lock(ctx context.Context, name string) (unlock func(), err error)
	// Follow calls changed for every key and tenant that any node changes, and with
	// the zero Notice whenever some may have been missed, also at first. It returns
	// when ctx ends.
	Follow(ctx context.Context, changed func(Notice)) error
	// SpendOnce reports whether nobody spent a name before; it is remembered for a
	// while.
	SpendOnce(ctx context.Context, name string, remember time.Duration) (bool, error)
	// Spent reports whether a name was spent and is remembered.
	Spent(ctx context.Context, name string) (bool, error)
}

// Membership is how nodes know of each other.
type Membership interface {
	// Beat renews the lease of this node, or takes a new one where it ran out, and
	// says how the node is. A node of that name that lives elsewhere is Conflict.
	Beat(ctx context.Context, n Node) (Pulse, error)
	// Leave gives the lease back: at once, so that the node is gone, or after a
	// grace in which it may be back.
	Leave(ctx context.Context, grace time.Duration) error
	// Members returns every node by its name.
	Members(ctx context.Context) ([]Node, error)
	// Cordon says whether a node is to be given new sessions.
	Cordon(ctx context.Context, node string, on bool) error // NotFound
}

// Pulse is what a directory answers to a beat.
type Pulse struct {
	Token int64 // of the lease; another one than before says that it ran out meanwhile
	// Settling is how long the directory may still lack what nodes know, because it
	// was begun anew. Until then nobody can be told that a session is not there.
	Settling time.Duration
	// Epoch is another one each time that the directory was begun anew, with what it
	// had or without; Origin only when it lost all.
	Epoch    string
	Origin   string
	Cordoned bool // this node is to be given nothing new
}

// Notice tells of a key or a tenant that somebody changed.
type Notice struct {
	Key     ID
	Revoked bool // of the key
	Tenant  string
}
