package cove

import (
	"slices"
	"time"
)

// Principal is who asks. It is made by the authentication of a face, or by the
// owner of the process, and is bound to a Platform.
type Principal struct {
	Name     string   // the key's id, or the operating-system user
	Label    string   // what people call the key; decides nothing
	Tenant   string   // whose things it sees
	Scopes   []Scope  // what it may do
	Limits   KeyLimit // its own bounds
	Defaults Spec     // what its requests mean where they say nothing

	ExpiresAt time.Time // when its key ceases to be good; zero for never
}

// May reports whether p holds a scope.
func (p Principal) May(s Scope) bool {
	return slices.Contains(p.Scopes, ScopeAll) || slices.Contains(p.Scopes, s)
}

// Action is one thing a principal wants to do, with all that is needed to
// judge it.
type Action struct {
	Verb      Verb
	Principal Principal
	Session   *Session        // nil when opening and for what has no session
	Spec      *Spec           // when opening; with the network alone, when changing it
	Exec      *ExecRequest    // when running a program
	Code      *CodeRequest    // when running code
	Run       *RunRequest     // when asking a question of data
	Report    *SecurityReport // what was found in the code, where somebody looked
	Path      string          // when touching a file
	Tenant    string          // when asking about one tenant
}

// Policy decides. Decide is pure: no I/O, no clock, no chance, so that a
// decision can be made again from the same action.
type Policy interface {
	Decide(a Action) Decision
}

// Effect is the word of a decision.
type Effect string

// The effects. Anything else counts as Deny.
const (
	Allow Effect = "allow"
	Deny  Effect = "deny"
	Ask   Effect = "ask" // a person must agree first
)

// Layer says which of the two layers of no a decision belongs to.
type Layer string

// The layers. Authorization fails as an error; content gives a Blocked result.
const (
	Authorization Layer = "authorization"
	Content       Layer = "content"
)

// Decision is the answer, and the bounds it puts on what may now run. Bounds
// only tighten what was asked for.
type Decision struct {
	Effect  Effect   `json:"effect"`
	Layer   Layer    `json:"layer,omitempty"`
	Refusal *Refusal `json:"refusal,omitempty"` // why, unless allowed
	Limits  Limits   `json:"limits,omitzero"`
	// Programs are those that the session's command policy lets run, whatever
	// the command names; nil without such a policy. The sandbox enforces them.
	Programs *Programs `json:"-"`
}

// Programs are the executables that a command and all that it starts may
// execute. They are shared: do not change them.
type Programs struct {
	Names   []string // bare names of programs in the directories for programs, sorted; one that is not installed means nothing
	Helpers []string // absolute paths of files, and of directories with all that is below them, sorted; one that does not exist means nothing
	Offline bool     // they may open no socket of the internet families
}

// Refusal says why something may not be done, in words for the caller.
type Refusal struct {
	Rule   string `json:"rule"`             // which rule said so
	Reason string `json:"reason"`           // one sentence
	Word   string `json:"word,omitempty"`   // the word it is about
	Line   int    `json:"line,omitempty"`   // its place, from 1
	Column int    `json:"column,omitempty"` // in bytes, from 1
}
