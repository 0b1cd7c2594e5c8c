package cove

import (
	"context"
	"time"
)

// Observer is told what an engine does, for metrics, traces and logs. It gets
// names, numbers and times; commands, code, paths, file contents, environments
// and messages are not among what it gets, so none of them can leak through it.
//
// Both methods are on the way of every action: they must return at once, must
// be safe for concurrent use, and cannot stop what they see.
type Observer interface {
	// Begin is told of an action before it is decided on. The action goes on with
	// the context that it returns. end, where it is not nil, is called once, when
	// the action is over.
	Begin(ctx context.Context, what Observed) (_ context.Context, end func(Ending))
	// Note is told of what happens inside an action, after it, or without one.
	Note(ctx context.Context, h Happening)
}

// Observed says what something is about. Words that callers made up are cut
// short; what is not known is "".
type Observed struct {
	Verb      Verb
	Principal string
	Tenant    string
	Session   ID
	Provider  string
	User      string
	Thread    string
}

// Ending is how an action went.
type Ending struct {
	Observed // as it is known in the end: an Open has its session

	Effect   Effect  // of the decision
	Code     Code    // of the error, if any
	Reason   string  // the finer word under the code
	Outcome  Outcome // of a program that was waited for, or Blocked
	ExitCode int     // of that program
	Bytes    int64   // taken from the caller for files

	// When the parts of the road were over. A part that was not reached, or that
	// the action does not have, is zero.
	Began    time.Time
	Decided  time.Time
	Intended time.Time // the journal has the intent
	Done     time.Time
	Ended    time.Time // the journal has the outcome
}

// Wall is how long the action took.
func (e Ending) Wall() time.Duration { return e.Ended.Sub(e.Began) }

// Happening is something that an Observer is told of beside the actions.
type Happening struct {
	Observed // without a Verb and a Principal

	Kind     string        // one of the happenings below, or the kind of a journal note
	Instead  string        // the provider that was to serve the session, if another does
	Cause    string        // why a session ended: one of the reasons
	Code     Code          // of the error, if any
	Outcome  Outcome       // of a program
	ExitCode int           // of that program
	Bytes    int64         // given out
	Wall     time.Duration // how long it took; of a session, how long it lived

	Run    ID        // that it is about, if it is one
	Query  QueryType // of a run
	Status string    // of its answer
	Fault  string    // the type of its error, if it has one
}

// RunEnded is told to the journal and the observer when a run has an answer.
const RunEnded = "run.ended"

// The happenings that are not in the journal. Those that are, such as
// session.evicted and session.lost, are told under the journal's word.
const (
	SessionCreated = "session.created" // by an Open or a Fork
	SessionReused  = "session.reused"  // by an Open
	SessionEnded   = "session.ended"   // for a Cause
	ProgramEnded   = "process.ended"   // one in the background
	FileDownloaded = "file.downloaded" // a file or an archive was read, whole or not
	PoolHit        = "pool.hit"        // a session got a sandbox that was ready
	PoolMiss       = "pool.miss"       // a session had to wait for one to be made
)
