package kernel

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/talk"
)

// Version is that of the drivers and of what is kept with them. An interpreter whose
// driver has another one cannot be taken up.
const Version = 1

// Bounds on what is kept of an interpreter for the next process.
const (
	// maxUnmarked is how much may have been read since the last mark. A run that writes
	// more has no result if this process ends meanwhile.
	maxUnmarked = 4 << 20
	// maxSure is the most of a request that is in the pipe at once, so that the driver
	// got all of it or nothing.
	maxSure = 4 << 10
)

// state is what the next process must know of an interpreter: the note that its
// provider keeps.
type state struct {
	Version  int           `json:"version"`
	Language string        `json:"language"`
	Marker   string        `json:"marker"`
	Group    int           `json:"group,omitempty"`
	Seq      uint32        `json:"seq"`            // of the last run
	At       position      `json:"at"`             // from where on the output is kept
	Sure     bool          `json:"sure,omitempty"` // the driver got the request as a whole or not at all
	Cut      bool          `json:"cut,omitempty"`  // output of the run before At is gone
	Over     bool          `json:"over,omitempty"` // and the run has ended
	Begun    time.Time     `json:"begun"`
	Wall     time.Duration `json:"wall,omitempty"`
	Note     []byte        `json:"note,omitempty"` // [cove.KernelRun.Note]
}

// kept is the part of a kernel that outlives this process. All methods can be called
// on nil.
type kept struct {
	keep string
	left chan struct{} // closed by Leave
	once sync.Once

	// Of an interpreter that was taken up, until Finish.
	last   *run
	limits cove.Limits

	mu    sync.Mutex // held while a mark is made
	state state
}

func newKept(keep string) *kept {
	if keep == "" {
		return nil
	}
	return &kept{keep: keep, left: make(chan struct{})}
}

func (k *kept) over() <-chan struct{} {
	if k == nil {
		return nil
	}
	return k.left
}

func (k *kept) isLeft() bool {
	select {
	case <-k.over():
		return true
	default:
		return false
	}
}

// leaving is the answer to a caller that waits for a run when this process goes.
func leaving() error {
	return cove.Wrap(cove.Unavailable, cove.ErrLeft, "the server is shutting down; the code goes on").
		Remedy("ask again with the same idempotency key when the server is back")
}

// recorder returns what keeps the programs of a sandbox; nil where nothing does.
func recorder(in cove.Starter) cove.Recorder {
	if p, ok := in.(interface{ Recorder() cove.Recorder }); ok {
		return p.Recorder()
	}
	if s, ok := in.(cove.Sandbox); ok {
		if r, ok := cove.As[cove.Recorder](s); ok {
			return r
		}
	}
	return nil
}

// begin writes down that a run begins, before the driver hears of it.
func (k *kept) begin(ctx context.Context, of *kernel, r *run, what cove.KernelRun, at position, length int) error {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state = state{
		Version: Version, Language: of.lang.name, Marker: string(of.x.marker), Group: of.group, Seq: r.seq, At: at,
		Sure: length <= maxSure, Begun: r.begun, Wall: what.Limits.Wall, Note: what.Note,
	}
	return k.mark(ctx, of)
}

// mark has the provider keep the state. The caller holds mu.
func (k *kept) mark(ctx context.Context, of *kernel) error {
	rec := recorder(of.in)
	if rec == nil {
		return nil // it ends with this process, as the documentation says of such providers
	}
	note, err := json.Marshal(k.state)
	if err != nil {
		return err
	}
	of.x.mu.Lock()
	of.x.marked = k.state.At
	of.x.mu.Unlock()
	return rec.Mark(ctx, k.keep, cove.Mark{Note: note, Stdout: k.state.At.Out, Stderr: k.state.At.Err})
}

// forget frees what is kept of an interpreter that has ended.
func (k *kept) forget(ctx context.Context, in cove.Starter) {
	if k == nil {
		return
	}
	if rec := recorder(in); rec != nil {
		_ = rec.Forget(ctx, k.keep) // what stays goes with the sandbox
	}
}

// watchOutput has the mark follow an interpreter that writes much without being asked
// anything, or in one run.
func (k *kernel) watchOutput() {
	if k.kept == nil {
		return
	}
	behind := make(chan struct{}, 1)
	k.x.behind = func() {
		select {
		case behind <- struct{}{}:
		default:
		}
	}
	go func() {
		for {
			select {
			case <-behind:
				k.catchUp()
			case <-k.dead:
				return
			}
		}
	}()
}

// overflow says that much was read since the last mark. The caller holds mu.
func (x *exchange) overflow() {
	if x.behind != nil && x.out.done-x.marked.Out+x.err.done-x.marked.Err > maxUnmarked {
		x.behind()
	}
}

// catchUp marks all output as read. A run that is under way is cut by that.
func (k *kernel) catchUp() {
	k.kept.mu.Lock()
	defer k.kept.mu.Unlock()
	if k.kept.state.Version == 0 || k.kept.isLeft() {
		return // it was never marked, and ends with this process
	}
	k.x.mu.Lock()
	k.kept.state.At, k.x.rest = k.x.position(), k.x.position()
	k.kept.state.Cut, k.kept.state.Over = true, k.x.run == nil
	k.x.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), killTime)
	defer cancel()
	_ = k.kept.mark(ctx, k) // the next one comes with the next run, which says what is wrong
}

// Leave implements [cove.KeptKernel].
func (k *kernel) Leave() {
	if k.kept != nil {
		k.kept.once.Do(func() { close(k.kept.left) })
	}
}

// Resume implements [cove.KernelResumer].
func (k *Kernels) Resume(
	ctx context.Context, in cove.Sandbox, what cove.Kept, spec cove.KernelSpec, again func([]byte) (cove.KernelRun, error),
) (cove.KeptKernel, error) {
	var s state
	if err := json.Unmarshal(what.Note, &s); err != nil || s.Version == 0 {
		return nil, cove.Errorf(cove.Internal, "what is kept of an interpreter cannot be read")
	}
	lang := k.languageOf(s.Language)
	if s.Version != Version || lang == nil {
		return nil, cove.Errorf(cove.Conflict, "the interpreter was started by another version of Cove, and cannot be taken up")
	}
	rec := recorder(in)
	if rec == nil {
		return nil, cove.Errorf(cove.Unsupported, "the provider keeps no interpreters")
	}
	listener, err := again(s.Note)
	if err != nil {
		return nil, err
	}
	n := &kernel{
		lang: lang, in: in, x: newExchange(), box: talk.NewInbox(), dead: make(chan struct{}), programs: spec.Programs,
		group: s.Group, seq: s.Seq, kept: newKept(what.Keep),
	}
	n.x.marker = []byte(s.Marker)
	n.x.out.came, n.x.out.done, n.x.out.point = s.At.Out, s.At.Out, s.At.OutPoint
	n.x.err.came, n.x.err.done, n.x.err.point = s.At.Err, s.At.Err, s.At.ErrPoint
	n.x.marked, n.x.rest = s.At, s.At
	n.kept.state, n.kept.limits = s, listener.Limits
	n.kept.last = newRun(s.Seq, listener)
	n.kept.last.begun = s.Begun
	n.x.begin(n.kept.last)
	n.watchOutput()
	cmd := cove.Command{Stdin: n.box, Stdout: &n.x.out, Stderr: &n.x.err, Keep: what.Keep, Record: true}
	if n.proc, err = rec.Resume(ctx, what.Keep, cmd); err != nil {
		close(n.dead)
		return nil, err
	}
	n.running.Store(true)
	go n.watch(context.WithoutCancel(ctx))
	return n, nil
}

// Finish implements [cove.KeptKernel].
func (k *kernel) Finish(ctx context.Context) (*cove.CodeResult, error) {
	defer k.running.Store(false)
	r := k.kept.last
	k.kept.last = nil
	k.kept.mu.Lock()
	was := k.kept.state
	k.kept.mu.Unlock()
	if was.Over {
		k.x.end(r)
		return nil, unknownOutcome()
	}
	var late <-chan time.Time
	if wall := k.kept.limits.Wall; wall > 0 {
		timer := time.NewTimer(wall)
		defer timer.Stop()
		late = timer.C
	}
	if was.Sure {
		// The driver answers in the order of requests: where it has not said that the run
		// is over by then, it did not get it.
		if err := k.box.Send(ctx, request(askPing, 0)); err != nil && k.Alive() {
			return nil, err
		}
		var unheard *run
		select {
		case <-k.x.pong:
			k.x.mu.Lock()
			if !r.finished {
				unheard, k.x.run = r, nil
			}
			k.x.mu.Unlock()
		case <-r.done:
		case <-k.dead:
		case <-r.flood:
			r.flood <- struct{}{} // for the next caller
		case <-k.kept.over():
		case <-late:
			return k.known(k.stop(ctx, r, k.kept.limits.Wall, overtime(was.Wall)))
		case <-ctx.Done():
		}
		if unheard != nil {
			k.seq--
			return nil, cove.ErrNotBegun
		}
	}
	return k.known(k.outcome(ctx, r, k.kept.limits, late))
}

// known is the result of a run of an earlier process, if all of it is there.
func (k *kernel) known(out *cove.CodeResult, err error) (*cove.CodeResult, error) {
	k.kept.mu.Lock()
	defer k.kept.mu.Unlock()
	if err == nil && k.kept.state.Cut {
		return nil, unknownOutcome()
	}
	return out, err
}

func unknownOutcome() error {
	return cove.Errorf(cove.Conflict, "the server stopped after the code began, and a part of what it had written is lost; the context and its variables are kept").
		Reason(cove.ReasonOutcomeUnknown).Remedy("look at what the code should have done before you run it again")
}

var (
	_ cove.KernelResumer = (*Kernels)(nil)
	_ cove.KeptKernel    = (*kernel)(nil)
)
