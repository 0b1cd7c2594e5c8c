package cove

import (
	"context"
	"iter"
	"time"
)

// A Session is a caller's lease on a sandbox: the durable record of it.
type Session struct {
	ID       ID     `json:"id"`
	Tenant   string `json:"tenant"`
	Owner    string `json:"owner"` // the principal that opened it
	Spec     Spec   `json:"spec"`  // resolved: every default is filled in
	State    State  `json:"state"`
	Cause    string `json:"cause,omitempty"` // why it is stopped, paused, in error or has ended; one of the reasons
	Provider string `json:"provider"`        // which one served it
	// Instead is the provider that was to serve it and was not ready, where the
	// operator wrote down that another may.
	Instead   string    `json:"instead_of,omitempty"`
	Isolation Isolation `json:"isolation"`
	Node      string    `json:"node"`             // "" while no node has it: it is stopped, and any may start it
	Memory    Bytes     `json:"memory,omitempty"` // what it counts for in bounds on memory
	Version   int64     `json:"version"`          // for compare-and-swap

	CreatedAt    time.Time `json:"created_at"`
	LastActivity time.Time `json:"last_activity"`
	ExpiresAt    time.Time `json:"expires_at"`
	EndedAt      time.Time `json:"ended_at,omitzero"`

	Busy     bool `json:"-"` // something runs in it now
	Created  bool `json:"-"` // this very Open made it
	Archived bool `json:"archived,omitempty"`
	// ArchiveSize is what the archive takes, while it is Archived. It is in the record
	// only.
	ArchiveSize Bytes `json:"archive_size,omitempty"`
	// Enlarged is the workspace that the last start made, where the saved files took more
	// than Spec.Workspace. It is in the record only.
	Enlarged Workspace `json:"enlarged,omitzero"`
	// LastPID is the newest process number given out, so that none is used twice. The
	// record in the store may be ahead of it.
	LastPID PID `json:"last_pid,omitempty"`
	// Counted are background programs that a provider still keeps and whose CPU
	// time has been added to the tenant's. It is in the record only.
	Counted []PID `json:"counted,omitempty"`
	// Was and WasCause are the state and the cause that a session in error has again when
	// its provider is back. They are in the record only.
	Was      State  `json:"was,omitempty"`
	WasCause string `json:"was_cause,omitempty"`
	// Trial says whether changes to the files are on trial.
	Trial TrialState `json:"trial,omitempty"`
}

// State is where a session is in its life.
type State string

// The life of a session. An ended session is only remembered, for a while, so
// that its next caller learns why it is gone.
const (
	Creating State = "creating"
	Running  State = "running"
	Paused   State = "paused"
	Stopped  State = "stopped" // no sandbox; the workspace is kept
	Failed   State = "error"
	Ended    State = "ended"
)

// States returns every state.
func States() []State { return []State{Creating, Running, Paused, Stopped, Failed, Ended} }

// AutoResumes reports whether the next action inside a stopped or paused session starts
// or resumes it first.
func (s *Session) AutoResumes() bool {
	return (s.State == Stopped || s.State == Paused) && (s.Spec.Wake || s.ByServer())
}

// ByServer reports whether the server stopped or paused the session by itself. A caller
// that stops or pauses a session, or gives it a fixed end, did ask for that.
func (s *Session) ByServer() bool {
	switch s.Cause {
	case ReasonSessionStopped, ReasonSessionPaused:
		return false
	case ReasonSessionExpired, "": // records of older versions have no cause
		return !s.Spec.FixedEnd
	}
	return true
}

// Live reports whether the session holds its (tenant, user, thread) key.
func (s State) Live() bool { return s != Ended && s != Failed }

// Sessions opens, finds and ends sessions.
type Sessions interface {
	// Open returns the caller's live session for (user, thread), or makes one.
	// A session without user and thread is always new. A stopped session is
	// started again. A live one that was opened otherwise is Conflict, with the
	// names of the fields in Details["fields"].
	Open(ctx context.Context, req OpenRequest) (*Session, error)
	Get(ctx context.Context, id ID) (*Session, error)
	List(ctx context.Context, f SessionFilter) iter.Seq2[*Session, error]
	// Renew moves the idle deadline, or the fixed end, to d from now; 0 means the
	// session's own timeout. It never moves the end of the lifetime, nor ends a
	// session sooner that is kept paused or stopped after its time.
	Renew(ctx context.Context, id ID, d time.Duration) (*Session, error)
	// Stop ends what runs and frees the sandbox, and keeps the workspace.
	Stop(ctx context.Context, id ID) (*Session, error)
	// Start brings a stopped session back with its files.
	Start(ctx context.Context, id ID) (*Session, error)
	// Close ends a session. With keep, its files stay as a snapshot, whose id is
	// the answer.
	Close(ctx context.Context, id ID, keep bool) (ID, error)
	Usage(ctx context.Context, id ID) (Usage, error)
	// SetNetwork replaces what a session may reach, now and after a stop. It is
	// bound by what bounds Open. A mode that the live sandbox was not made for is
	// Unsupported; a stopped session takes it when it starts.
	SetNetwork(ctx context.Context, id ID, n Network) (*Session, error)
	// Connections yields what the session's sandbox tried to reach, oldest first,
	// after the one numbered after. Only the newest are kept, and only while the
	// sandbox lives.
	Connections(ctx context.Context, id ID, after int64) iter.Seq2[Connection, error]
}

// OpenRequest is a Spec and how to wait for room.
type OpenRequest struct {
	Spec           Spec
	OnFull         OnFull
	IdempotencyKey string // the same key and request give the same session, for a day
	// OnQueue is told the place in the queue whenever it changes; 1 is next.
	OnQueue func(position int)
}

// OnFull says what to do when there is no room.
type OnFull string

// What to do when there is no room. The default is RejectWhenFull.
const (
	RejectWhenFull OnFull = "reject"
	WaitWhenFull   OnFull = "wait"
)

// Validate reports a request that cannot be taken.
func (r OpenRequest) Validate() error {
	switch r.OnFull {
	case "", RejectWhenFull, WaitWhenFull:
	default:
		return InvalidField("on_full", "%.40q is unknown; use wait or reject", string(r.OnFull))
	}
	if err := validText("Idempotency-Key", r.IdempotencyKey, maxNameLen); err != nil {
		return err
	}
	return r.Spec.Validate()
}

// SessionFilter selects sessions; zero fields select all but the ended ones,
// which only State selects.
type SessionFilter struct {
	Tenant   string // set by the engine
	Project  string
	User     string
	Thread   string
	State    State
	Node     string
	Metadata map[string]string
	After    ID  // of the previous page
	Limit    int // 0 means no bound
}

// Match reports whether s is selected, but for After and Limit.
func (f SessionFilter) Match(s *Session) bool {
	for k, v := range f.Metadata {
		if s.Spec.Metadata[k] != v {
			return false
		}
	}
	return (s.State != Ended || f.State == Ended) && wants(f.Tenant, s.Tenant) && wants(f.Project, s.Spec.Project) &&
		wants(f.User, s.Spec.User) && wants(f.Thread, s.Spec.Thread) && wants(string(f.State), string(s.State)) && wants(f.Node, s.Node)
}

func wants(want, have string) bool { return want == "" || want == have }
