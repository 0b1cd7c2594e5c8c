package cove

import "context"

// Trials runs programs of one session on trial: on a layer over its workspace,
// which is kept or taken away afterwards. A session has one trial at a time.
// While it is open, programs and file calls see the layer, and what would save
// the files or end the sandbox but keep them (stop, snapshot, fork) is Conflict
// with reason trial_open. Closing the session discards it.
type Trials interface {
	// Run runs a program to its end on a new layer, ends all that it left
	// behind, and says what it changed. The trial then stays open until Commit
	// or Discard, unless req.Then says what to do at once.
	//
	// It is Conflict while another trial is open, and while programs run that
	// would not see the layer; Details["programs"] names them. A program that
	// policy refuses is an Execution with outcome Blocked, and there is no trial.
	// Where the program could not be run to its end, as when ctx ends, its
	// changes are discarded; an error after its end leaves the trial open.
	Run(ctx context.Context, req TrialRequest) (*TrialResult, error)
	// Get tells what the open trial has changed by now; NotFound if there is
	// none. A trial that was lost with the server is NotFound with reason
	// trial_lost until somebody discards it or runs another.
	Get(ctx context.Context) (*TrialResult, error)
	// Before returns what a file of the workspace held before the open trial. It
	// is NotFound where there was none, Invalid for what is no regular file, and
	// Invalid with reason file_too_large for more than MaxTrialFile bytes. No link
	// is followed.
	Before(ctx context.Context, name string) ([]byte, error)
	// Commit makes the changes part of the workspace, Discard takes them away.
	// Both are Conflict while a program still uses the layer, and the trial goes
	// on then.
	Commit(ctx context.Context) error
	Discard(ctx context.Context) error
}

// TrialRequest is a program to run on trial. It has no terminal.
type TrialRequest struct {
	ExecRequest

	Then TrialEnd
}

// TrialEnd says what becomes of a trial when its program has ended.
type TrialEnd string

// What becomes of a trial. The zero value leaves it open.
const (
	ThenKeep            TrialEnd = ""
	ThenCommit          TrialEnd = "commit"
	ThenDiscard         TrialEnd = "discard"
	ThenCommitOnSuccess TrialEnd = "commit_on_success" // discard unless it exited with 0
)

// Validate reports a request that cannot be taken.
func (r TrialRequest) Validate() error {
	switch r.Then {
	case ThenKeep, ThenCommit, ThenDiscard, ThenCommitOnSuccess:
	default:
		return InvalidField("then", "%.40q is unknown; use commit, discard or commit_on_success, or leave it out", string(r.Then))
	}
	if r.TTY != nil {
		return InvalidField("tty", "a program on trial has no terminal; start it in the background instead")
	}
	return r.ExecRequest.Validate()
}

// TrialResult is what a trial did. Changes holds the first of them, sorted by
// path; the counts and Bytes are of all.
type TrialResult struct {
	Execution *Execution   // of Run; nil where the server has restarted since
	Changes   []FileChange // up to MaxTrialChanges
	Truncated bool         // there are more than Changes holds
	Created   int64
	Modified  int64
	Removed   int64
	Bytes     Bytes // in the files that were created or modified
	Open      bool  // neither committed nor discarded yet
	Committed bool
}

// MaxTrialChanges bounds TrialResult.Changes.
const MaxTrialChanges = 10_000

// MaxTrialFile bounds what Before returns.
const MaxTrialFile = 1 * MiB

// TrialState is what the record of a session says about its trial.
type TrialState string

// The states of a trial; "" means that there is none.
const (
	TrialOpen TrialState = "open"
	// TrialLost: the server restarted while it was open and its layer is gone.
	// Nothing was committed since.
	TrialLost TrialState = "lost"
)
