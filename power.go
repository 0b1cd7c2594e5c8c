package cove

import (
	"context"
	"net"
)

// Power names something that a provider may be able to do beyond [Sandbox].
type Power string

// The powers. Capabilities lists those that a provider has, the interfaces
// below carry them out, and providertest proves that the two agree.
const (
	PowerPause    Power = "pause"    // its sandboxes are a Pauser
	PowerSnapshot Power = "snapshot" // its sandboxes are a Snapshotter, the provider a SnapshotKeeper
	PowerFork     Power = "fork"     // its sandboxes are a Forker
	PowerDial     Power = "dial"     // its sandboxes are a Dialer
	PowerPrepare  Power = "prepare"  // the provider is a Preparer
	PowerTerminal Power = "terminal" // Command.TTY is honored
	PowerAttach   Power = "attach"   // sandboxes outlive the process that made them
)

// Powers returns every power.
func Powers() []Power {
	return []Power{PowerPause, PowerSnapshot, PowerFork, PowerDial, PowerPrepare, PowerTerminal, PowerAttach}
}

// Pauser is a Sandbox that can be stopped and continued without losing state.
// Both calls are idempotent.
type Pauser interface {
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
}

// Snapshotter is a Sandbox whose files can be saved under a name, from which
// Create starts when Spec.Snapshot names it.
type Snapshotter interface {
	Snapshot(ctx context.Context, name ID) (Bytes, error)
}

// SnapshotKeeper is a Provider that keeps snapshots. Removing one that does
// not exist is no error; sandboxes made from it live on.
type SnapshotKeeper interface {
	RemoveSnapshot(ctx context.Context, name ID) error
}

// Forker is a Sandbox that can be doubled while it runs. The copy has its own
// id and the spec given, and shares nothing that either can see change.
type Forker interface {
	Fork(ctx context.Context, id ID, spec Spec) (Sandbox, error)
}

// Dialer is a Sandbox whose ports can be reached. A port nobody listens on is
// Unavailable.
type Dialer interface {
	Dial(ctx context.Context, port int) (net.Conn, error)
}

// Mortal is a Sandbox that can die by itself, as when the kernel kills what holds
// it. It is no power of a provider, only a way to learn of it in time.
type Mortal interface {
	// Died is closed when the sandbox has ended without Destroy. Destroy still
	// frees what it held.
	Died() <-chan struct{}
}

// Mold is what prepared sandboxes have in common: what is slow to make and the
// same for every caller. The pool is keyed by it.
type Mold struct {
	Provider  string        `json:"provider"`
	Template  string        `json:"template"`
	Workspace WorkspaceKind `json:"workspace"`
}

// Preparer is a Provider that can do the slow part of Create ahead of time.
type Preparer interface {
	Prepare(ctx context.Context, m Mold) (Spare, error)
}

// Spare is a prepared sandbox that belongs to nobody yet.
type Spare interface {
	// Claim makes it a sandbox with an id and a spec, under the contract of
	// Provider.Create. After Claim, whatever it returns, the Spare is used up.
	Claim(ctx context.Context, id ID, spec Spec) (Sandbox, error)
	// Discard frees it. It is idempotent.
	Discard(ctx context.Context) error
}

// As returns the first value in the chain of v that is a T. A decorator takes
// part by having Unwrap() Sandbox or Unwrap() Provider.
func As[T any](v any) (T, bool) {
	for v != nil {
		if t, ok := v.(T); ok {
			return t, true
		}
		switch u := v.(type) {
		case interface{ Unwrap() Sandbox }:
			v = u.Unwrap()
		case interface{ Unwrap() Provider }:
			v = u.Unwrap()
		default:
			v = nil
		}
	}
	var zero T
	return zero, false
}
