package cove

import (
	"context"
	"time"
)

// Artifacts keeps code and what came of it, for people to look at afterwards.
// Which runs are kept, how much of them and for how long is its own affair; so
// is taking secrets out.
type Artifacts interface {
	Put(ctx context.Context, a Artifact) error
	// Sweep removes what is too old or too much, and says how many.
	Sweep(ctx context.Context) (int64, error)
	// Held is how much is kept of a tenant, as far as it can be read.
	Held(tenant string) Bytes
}

// Artifact is one run of code.
type Artifact struct {
	At       time.Time
	Session  ID
	Tenant   string
	Language string
	Code     string
	Result   *CodeResult
	Env      map[string]string // of the session; values of secrets may be among the output
}
