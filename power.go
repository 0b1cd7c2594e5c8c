package cove

import (
	"context"
	"iter"
	"net"
	"time"
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
	PowerSolo     Power = "solo"     // the provider is a Soloist
	PowerTerminal Power = "terminal" // Command.TTY is honored
	PowerAttach   Power = "attach"   // sandboxes outlive the process that made them
	PowerResume   Power = "resume"   // its sandboxes are a Resumer
	PowerTrial    Power = "trial"    // its sandboxes are a Trier
	PowerEgress   Power = "egress"   // its sandboxes are an Egress, where Spec.Network lets something out
)

// Powers returns every power.
func Powers() []Power {
	return []Power{PowerPause, PowerSnapshot, PowerFork, PowerDial, PowerPrepare, PowerSolo, PowerTerminal, PowerAttach, PowerResume, PowerTrial, PowerEgress}
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

// Resumer is a Sandbox whose programs can outlive the process that started them.
// What a program writes while nobody is there is kept, to a cap.
type Resumer interface {
	// Kept yields the programs that were started with Command.Keep and are not
	// forgotten yet, ended ones included.
	Kept(ctx context.Context) iter.Seq2[Kept, error]
	// Resume returns a kept program as Start did. Its output is delivered to the
	// writers of cmd from the first byte on. A writer that has a method Skip(n int64)
	// is told in its place how much was dropped of its stream. Argv, Dir, Env and TTY are not looked
	// at. Stdin is read on from where it is. A Limits.Wall is counted from now.
	Resume(ctx context.Context, keep string, cmd Command) (Process, error)
	// Forget frees what is kept of a program, which is killed if it still runs.
	// An unknown name is no error.
	Forget(ctx context.Context, keep string) error
}

// Recorder is a Resumer for programs that are sent requests and that write answers
// for as long as they live, as interpreters do. Their pipes are kept, and of what they
// wrote what was not marked as read.
type Recorder interface {
	Resumer
	// Mark is for a running program that was started with Command.Record. When it
	// returns, the program and the mark outlive this process. Resume then delivers what
	// the program writes from the mark's offsets on; Kept yields the mark's note. A
	// program that was never marked does not outlive this process.
	Mark(ctx context.Context, keep string, m Mark) error
}

// Mark says how much of a recorded program's output was read, and what the next
// process must know about it.
type Mark struct {
	Note []byte // at most 16 KiB
	// Stdout and Stderr are never less than before.
	Stdout, Stderr int64 // bytes of each stream that are not wanted again
}

// Kept is a program that a Resumer holds.
type Kept struct {
	Keep string // its name
	Note []byte // Command.Note, as it was given
}

// Trier is a Sandbox whose workspace can take changes on trial.
type Trier interface {
	// Try puts a layer over the workspace that takes all changes from now on.
	// It is Conflict while another one is there, and while a program runs that
	// uses the workspace and would not see the layer.
	Try(ctx context.Context) (Trial, error)
}

// TrialKeeper is a Trier whose trials outlive the process that began them. Where
// sandboxes can be attached, a Trier is one: else its open trials are lost with
// their sandboxes.
type TrialKeeper interface {
	// Tried returns the trial that is open, as after Attach; NotFound if there is
	// none. Where a commit was cut short, it is whole, or the trial is open.
	Tried(ctx context.Context) (Trial, error)
}

// Trial is a layer over a workspace. Commit and Discard end it; both are
// Conflict while a program still uses the layer, and the trial goes on then.
type Trial interface {
	// Changes yields what differs from the workspace below, sorted by path: one
	// line for each file, also within a directory that is new or gone. A
	// directory itself is Modified only by its mode or by having been a file.
	Changes(ctx context.Context) iter.Seq2[FileChange, error]
	// Before is as in Trials, for a clean path below the workspace.
	Before(ctx context.Context, name string) ([]byte, error)
	Commit(ctx context.Context) error
	Discard(ctx context.Context) error
}

// FileChange is one difference that a trial made: Created, Modified or Removed.
type FileChange struct {
	Kind ChangeKind `json:"kind"`
	Path string     `json:"path"`
	Info *FileInfo  `json:"info,omitempty"` // as it is now; nil when removed
}

// Egress is a Sandbox whose way out can be changed and looked at.
type Egress interface {
	// SetNetwork replaces what the sandbox may reach. Connections that the new
	// rules do not allow are ended. A mode that the sandbox was not made for is
	// Unsupported.
	SetNetwork(ctx context.Context, n Network) error
	// Connections yields what the sandbox tried to reach, oldest first, after
	// the one numbered after. Only the newest are kept.
	Connections(ctx context.Context, after int64) iter.Seq2[Connection, error]
}

// Connection is one attempt of a sandbox to reach something.
type Connection struct {
	Number   int64         `json:"number"` // counts up from 1
	At       time.Time     `json:"at"`
	Protocol string        `json:"protocol"` // tcp or dns
	Host     string        `json:"host"`     // the name, or the address where none is known
	Port     int           `json:"port,omitempty"`
	Address  string        `json:"address,omitempty"` // what was dialled
	Allowed  bool          `json:"allowed"`
	Why      string        `json:"why,omitempty"` // of a refusal or a failure
	Sent     Bytes         `json:"sent"`          // by the sandbox
	Received Bytes         `json:"received"`
	Took     time.Duration `json:"took"`
}

// Explainer is a Mortal that can say why it died.
type Explainer interface {
	// Cause is why the sandbox has ended, once Died is closed: an error with the reason
	// ReasonKernelMemory, or nil, which is all else.
	Cause() error
}

// Mortal is a Sandbox that can die by itself, as when the kernel kills what holds
// it. It is no power of a provider, only a way to learn of it in time.
type Mortal interface {
	// Died is closed when the sandbox has ended without Destroy. Destroy still
	// frees what it held.
	Died() <-chan struct{}
}

// Charger is a Sandbox that somebody asks money for. It is no power of a provider,
// only a way to say what a run costs.
type Charger interface {
	// Cost estimates what the sandbox costs for d; nil where no prices are known.
	Cost(d time.Duration) *Cost
}

// Mold is what prepared sandboxes have in common: what is slow to make and the
// same for every caller. The pool is keyed by it.
type Mold struct {
	Provider  string        `json:"provider"`
	Template  string        `json:"template"`
	Workspace WorkspaceKind `json:"workspace"`
	Solo      bool          `json:"solo,omitempty"` // what a Soloist prepares
	// Resources are those that what a Soloist prepares will most likely be given; a
	// spec that has others can claim it all the same.
	Resources Resources `json:"resources,omitzero"`
}

// Preparer is a Provider that can do the slow part of Create ahead of time.
type Preparer interface {
	Prepare(ctx context.Context, m Mold) (Spare, error)
}

// Soloist is a Provider that can make a sandbox for one program alone, which
// costs less than one that stays.
type Soloist interface {
	// PrepareSolo is Prepare for such a sandbox. What is claimed from the Spare is
	// fenced in like every other one, and runs one program: Start works once, and
	// without a terminal. What keeps the program from starting may be told by its
	// Wait instead. All it started ends with it, and only Destroy is left to do.
	// All else that a sandbox can do is Unsupported, and so are specs with
	// volumes, a snapshot, a disk workspace or a way out.
	PrepareSolo(ctx context.Context, m Mold) (Spare, error)
}

// Spare is a prepared sandbox that belongs to nobody yet.
type Spare interface {
	// Claim makes it a sandbox with an id and a spec, under the contract of
	// Provider.Create. After Claim, whatever it returns, the Spare is used up.
	Claim(ctx context.Context, id ID, spec Spec) (Sandbox, error)
	// Discard frees it. It is idempotent.
	Discard(ctx context.Context) error
}

// SpareStarter is a Spare in which programs can be started before it is claimed,
// so that an interpreter is warm when somebody comes. They run under the fence and
// in the resources given, which are the same for all of one Spare, and live on
// after Claim. They end there if they cannot have the bounds of the spec: the
// processes that they may start cannot be changed, and a sandbox with volumes or
// from a snapshot is made anew. It is no power of a provider, only a way to be
// faster.
type SpareStarter interface {
	StartIn(ctx context.Context, cmd Command, r Resources) (Process, error)
}

// SparePreloader is a SpareStarter that can start Python with modules imported
// already, whose memory all that have them share.
type SparePreloader interface {
	// StartPreloaded is StartIn for a command python3 -I -c CODE. Unsupported means
	// that StartIn is the way, Conflict that the Spare is claimed already; with both,
	// nothing has been read from the command's Stdin.
	StartPreloaded(ctx context.Context, cmd Command, r Resources, modules []string) (Process, error)
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
