package engine

import (
	"context"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/admission"
)

// lease is a session in memory: its record, its sandbox and what runs in it.
type lease struct {
	id     cove.ID
	tenant string

	turn  chan struct{} // holds one token; taken by what changes the state
	saved sync.Mutex    // one write of the record at a time
	// numbers is held by who gives out a process number, until the record has it.
	numbers sync.Mutex

	onIdle func() // told when nothing happens inside any more

	mu        sync.Mutex
	rec       cove.Session               // guarded by mu, as all below
	sandbox   cove.Sandbox               // nil unless Running or Paused
	goesOn    chan struct{}              // closed when it is not paused any more; nil unless somebody waits for that
	resting   bool                       // it is being stopped, started or paused: nothing new begins inside
	restCause string                     // why it is being stopped, or was
	restarted bool                       // it was started again, and no answer has said so yet
	runsSince time.Time                  // when its sandbox was made, taken up or resumed
	doubt     bool                       // nobody knows whether the directory was told that it ended, or is nobody's
	ending    bool                       // its time is up, and it is being paused or stopped for that
	runsLines string                     // the shell of the sandbox
	ticket    *admission.Ticket          // room at the gate; nil unless there is a sandbox
	busy      int                        // actions under way inside
	running   map[int]*execution         // all programs under way
	procs     map[cove.PID]*process      // background programs, ended ones too
	outputs   []kept                     // long output of foreground programs, oldest first
	stored    []string                   // files of such output that an earlier server kept, which go before these
	contexts  map[string]*slot           // interpreters
	codeRuns  []*codeRun                 // whose results callers can ask for again, oldest first
	warm      *warm                      // interpreters that no context has; nil: none
	asked     *desk                      // where questions to data are answered; nil: nowhere yet
	watchers  map[int]context.CancelFunc // streams to end when the sandbox goes
	listings  []*listing                 // lists of files that wait for their next page, oldest first
	nextWait  int                        // the next number in running and watchers
	abandon   context.CancelCauseFunc    // ends the wait for room; nil unless it waits
	trial     *onTrial                   // what is on trial; nil unless rec.Trial is open
	heldSince time.Time                  // up to when what it holds is booked; zero while it holds no sandbox
	lastPID   cove.PID                   // the newest process number given out; the record may promise more
	spent     time.Duration              // the sandbox's CPU time that is booked, or was before it was taken up
	sample    sample                     // what the sandbox used when it was last asked
}

// leaseKey is what a session is found by.
type leaseKey struct{ tenant, user, thread string }

func newLease(rec cove.Session, onIdle func()) *lease {
	l := &lease{
		id: rec.ID, tenant: rec.Tenant, onIdle: onIdle, turn: make(chan struct{}, 1), rec: rec, lastPID: rec.LastPID,
		running: map[int]*execution{}, procs: map[cove.PID]*process{},
		contexts: map[string]*slot{}, watchers: map[int]context.CancelFunc{},
	}
	l.turn <- struct{}{}
	return l
}

func keyOf(s *cove.Session) (leaseKey, bool) {
	return leaseKey{s.Tenant, s.Spec.User, s.Spec.Thread}, s.Spec.User != "" || s.Spec.Thread != ""
}

// takeTurn waits until nothing else changes the lease's state.
func (l *lease) takeTurn(ctx context.Context) error {
	select {
	case <-l.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tryTurn takes the turn if nobody has it.
func (l *lease) tryTurn() bool {
	select {
	case <-l.turn:
		return true
	default:
		return false
	}
}

func (l *lease) giveTurn() { l.turn <- struct{}{} }

// view returns the record as a caller may see it.
func (l *lease) view() *cove.Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.viewLocked()
}

func (l *lease) viewLocked() *cove.Session {
	s := l.rec
	s.Spec = s.Spec.Clone()
	s.Busy, s.Counted, s.LastPID = l.busy > 0, nil, l.lastPID
	s.ExpiresAt = l.deadline()
	return &s
}

// deadline is when the session ends if nobody touches it. The caller holds mu.
func (l *lease) deadline() time.Time {
	at := l.rec.ExpiresAt
	if l.rec.Spec.Lifetime > 0 {
		if end := l.rec.CreatedAt.Add(l.rec.Spec.Lifetime); end.Before(at) {
			at = end
		}
	}
	return at
}

// expired reports whether the session has ended at now, because its time is up.
func (l *lease) expired(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rec.State == cove.Creating {
		return false
	}
	return l.lifeOver(now) || l.timeUp(now) && !l.restsNow(now)
}

// over reports whether the session has ended and nobody has cleaned up yet, and
// why.
func (l *lease) over(now time.Time) (cause string, over bool) {
	sandbox := l.box()
	if died(sandbox) {
		return cove.ReasonOf(deathOf(sandbox)), true
	}
	return cove.ReasonSessionExpired, l.expired(now)
}

// deathOf is why a sandbox that is gone is gone.
func deathOf(s cove.Sandbox) error {
	if x, ok := cove.As[cove.Explainer](s); ok {
		if err := x.Cause(); err != nil {
			return err
		}
	}
	return cove.Errorf(cove.NotFound, "its sandbox is gone").Reason(cove.ReasonNodeLost)
}

// touch marks activity, which moves the end unless that is fixed. The caller holds
// mu.
func (l *lease) touch(now time.Time) {
	l.rec.LastActivity = now
	if !l.rec.Spec.FixedEnd {
		l.rec.ExpiresAt = later(l.rec.ExpiresAt, now.Add(l.rec.Spec.Idle))
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// enter marks the lease as busy and returns its sandbox. Every enter is paired
// with a leave.
func (l *lease) enter() (cove.Sandbox, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := usable(&l.rec); err != nil {
		return nil, err
	}
	if l.resting {
		state := cove.Stopped
		if l.ending && l.rec.Spec.OnEnd == cove.EndPause {
			state = cove.Paused
		}
		return nil, usable(&cove.Session{State: state})
	}
	l.busy++
	l.touch(time.Now())
	return l.sandbox, nil
}

func (l *lease) leave() {
	l.mu.Lock()
	l.busy--
	idle := l.busy == 0
	l.touch(time.Now())
	l.mu.Unlock()
	if idle {
		l.onIdle()
	}
}

// setQueued says that the lease waits for room until abandon is called; nil
// that it does not.
func (l *lease) setQueued(abandon context.CancelCauseFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.abandon = abandon
}

func (l *lease) isQueued() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.abandon != nil
}

// giveUp ends the wait for room, if there is one.
func (l *lease) giveUp(cause error) (waited bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.abandon == nil {
		return false
	}
	l.abandon(cause)
	return true
}

// beginRest marks a lease in which nothing happens as being stopped for a cause, so that
// nothing begins inside until endRest. It reports whether it could.
func (l *lease) beginRest(cause string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy > 0 || l.rec.State != cove.Running && l.rec.State != cove.Paused {
		return false
	}
	l.resting, l.restCause = true, cause
	return true
}

// tellRestart reports whether the session was started again since the last answer.
func (l *lease) tellRestart() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.restarted
	l.restarted = false
	return was
}

// usable reports why nothing can run in a session now.
func usable(s *cove.Session) error {
	switch s.State {
	case cove.Running:
		return nil
	case cove.Stopped:
		return cove.Errorf(cove.Conflict, "the session is stopped").Reason(cove.ReasonSessionStopped).Remedy("start it first (POST /api/sandboxes/{id}/start, cove sandbox start, start() in SDKs); its files are kept")
	case cove.Paused:
		return cove.Errorf(cove.Conflict, "the session is paused").Reason(cove.ReasonSessionPaused).Remedy("resume it first (POST /api/sandboxes/{id}/resume, cove sandbox resume, resume() in SDKs)")
	case cove.Creating:
		return cove.Errorf(cove.Conflict, "the session is still being made").Remedy("try again in a moment")
	case cove.Failed:
		return failed(s)
	case cove.Ended:
		return gone(s)
	}
	return cove.Errorf(cove.Internal, "the session is in an unknown state")
}

// failed is the answer for a session whose sandbox cannot be used.
func failed(s *cove.Session) error {
	if s.Cause == cove.ReasonProviderDown {
		return cove.Errorf(cove.Conflict, "provider %s cannot be reached, so the session cannot be used", s.Provider).
			Reason(s.Cause).Remedy("start the server again when the provider is back; the session is taken up then")
	}
	if s.Cause == cove.ReasonKernelMemory {
		return gone(s)
	}
	return cove.Errorf(cove.Conflict, "the session is broken: its sandbox is gone").Reason(s.Cause).Remedy("close it and open a new one")
}

// gone is the answer for a session that has ended.
func gone(s *cove.Session) error {
	if s.Cause == cove.ReasonElsewhere {
		return elsewhere("")
	}
	text := map[string]string{
		cove.ReasonSessionExpired: "the session has expired",
		cove.ReasonSessionClosed:  "the session was closed",
		cove.ReasonNodeLost:       "the session was lost: what held it is gone",
		cove.ReasonVolumeOverrun:  "the session was ended: a volume that it could write to is over its limit, or has folders that nobody can look into",
		cove.ReasonKernelMemory:   "the session was ended: its programs held more file locks, connections or UDP sockets than they may",
	}[s.Cause]
	if text == "" {
		text = "the session has ended"
	}
	return cove.Errorf(cove.NotFound, "%s", text).Reason(s.Cause).Remedy("open a new one; its files are gone unless they were kept")
}

// change sets fields of the record.
func (l *lease) change(set func(*cove.Session)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	set(&l.rec)
}

// save puts the record into the store.
func (e *Engine) save(ctx context.Context, l *lease) error {
	e.alarmFor(l)
	if e.cfg.Fleeting {
		return nil // a record is for the time after this process
	}
	l.saved.Lock()
	defer l.saved.Unlock()
	l.mu.Lock()
	l.rec.Memory = l.rec.Spec.Resources.Memory
	rec := l.rec
	rec.Spec = rec.Spec.Clone()
	l.mu.Unlock()
	if err := e.putOwn(ctx, &rec); err != nil {
		return err
	}
	l.change(func(s *cove.Session) { s.Version = rec.Version })
	return nil
}

// watch registers a stream that must end with the sandbox, and returns the
// context it lives in.
func (l *lease) watch(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	l.mu.Lock()
	n := l.nextWait
	l.nextWait++
	l.watchers[n] = cancel
	l.mu.Unlock()
	return ctx, func() {
		cancel()
		l.mu.Lock()
		delete(l.watchers, n)
		l.mu.Unlock()
	}
}
