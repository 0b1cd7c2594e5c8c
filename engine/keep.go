package engine

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/cove-sandbox/cove"
)

// Bounds on what recovery waits for and takes up.
const (
	resumeTime = 10 * time.Second // for one call to a provider
	maxKept    = maxRunning + maxEndedKept + maxContexts + mostLanguages
	maxNote    = 16 << 10 // what a provider holds with a program
)

// errLetGo ends the waiting for a program that runs on without this process.
var errLetGo = errors.New("the server stops, and the program runs on")

// keepNote is what a provider holds with a background program, so that the
// table can be made again from it.
type keepNote struct {
	PID     cove.PID      `json:"pid"`
	Command string        `json:"command"`
	Argv    []string      `json:"argv,omitempty"`
	Dir     string        `json:"dir,omitempty"`
	Tag     string        `json:"tag,omitempty"`
	TTY     bool          `json:"tty,omitempty"`
	Input   bool          `json:"input,omitempty"` // it takes Input
	Started time.Time     `json:"started"`
	Output  cove.OutputID `json:"output"`
	Limits  cove.Limits   `json:"limits,omitzero"`
}

// info is what a list shows of the program while it runs.
func (n *keepNote) info(out cove.OutputID) cove.ProcessInfo {
	return cove.ProcessInfo{
		PID: n.PID, Command: n.Command, Argv: n.Argv, Dir: n.Dir, Tag: n.Tag,
		TTY: n.TTY, Running: true, StartedAt: n.Started, OutputID: out,
	}
}

func keepName(pid cove.PID) string { return "p" + strconv.Itoa(int(pid)) }

// keptItem is what a provider may write of a kept program's output, beside the log of
// this process. How much it has is known when the program has ended; until then it
// counts as all that it may be.
func keptItem(session cove.ID, keep string) diskItem {
	return diskItem{diskOutput, outputName(session, cove.OutputID(keep))}
}

// settleKept counts what a provider wrote of a program that has ended. One that began
// while its session ended is not in the table that freeKept looks at.
func (e *Engine) settleKept(l *lease, x *execution) {
	n := min(cove.Bytes(x.log.Total()), e.cfg.OutputKept)
	if l.box() == nil {
		n = 0
	}
	e.settleDisk(keptItem(l.id, x.keep), n)
}

// freeKept forgets what the providers wrote of programs whose sandbox is gone.
func (e *Engine) freeKept(l *lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, pr := range l.procs {
		e.freeDisk(keptItem(l.id, pr.x.keep))
	}
}

// keep asks a provider that can to let a program outlive this process.
func (n *keepNote) keep(e *Engine, sandbox cove.Sandbox, cmd *cove.Command) error {
	if _, ok := cove.As[cove.Resumer](sandbox); n == nil || !ok || e.cfg.Fleeting {
		return nil
	}
	text, err := json.Marshal(n)
	if len(text) > maxNote { // some bytes are six in JSON
		short := *n
		short.Argv, short.Dir = nil, ""
		text, err = json.Marshal(short)
	}
	if err != nil {
		return err
	}
	cmd.Keep, cmd.Note = keepName(n.PID), text
	return nil
}

// parse reads a note back. It is refused if it is not one of ours.
func (n *keepNote) parse(k cove.Kept) error {
	if err := json.Unmarshal(k.Note, n); err != nil {
		return err
	}
	if n.PID <= 0 || k.Keep != keepName(n.PID) || !cove.ID(n.Output).Valid() {
		return errors.New("the note does not fit the program")
	}
	return nil
}

// left is what a program may still use of its limits.
func (n *keepNote) left(now time.Time) cove.Limits {
	l := n.Limits
	if l.Wall > 0 {
		l.Wall = max(n.Started.Add(l.Wall).Sub(now), 1)
	}
	return l
}

// resumePrograms takes up the background programs of a lease that lived on
// while there was no server.
func (e *Engine) resumePrograms(ctx context.Context, l *lease) error {
	r, ok := cove.As[cove.Resumer](l.sandbox)
	if !ok {
		return nil
	}
	if _, err := e.tenants.load(ctx, l.tenant); err != nil { // what they use is booked there
		return err
	}
	var all []cove.Kept
	for k, err := range within(ctx, resumeTime, r.Kept) {
		if err != nil {
			return err
		}
		if all = append(all, k); len(all) == maxKept {
			break
		}
	}
	for _, k := range all {
		if isContext(k.Keep) && len(k.Note) == 0 { // it waited for its first code
			e.forgetPrograms(ctx, l.id, r, k.Keep)
			continue
		}
		err := e.resumeKept(ctx, l, r, k)
		switch cove.CodeOf(err) { //nolint:exhaustive // all others are about the program
		case "":
		case cove.Timeout, cove.Canceled, cove.Unavailable:
			return err // the provider has trouble: nothing of it is ended for that
		default:
			e.loseProgram(ctx, l, r, k.Keep, err)
		}
	}
	return nil
}

// resumeKept takes up a background program or an interpreter.
func (e *Engine) resumeKept(ctx context.Context, l *lease, r cove.Resumer, k cove.Kept) error {
	if isContext(k.Keep) {
		return e.resumeContext(ctx, l, k)
	}
	var n keepNote
	if err := n.parse(k); err != nil {
		return err
	}
	return e.resumeProgram(ctx, l, r, n)
}

// within bounds the time that a list may take.
func within[T any](ctx context.Context, d time.Duration, list func(context.Context) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		list(ctx)(yield)
	}
}

// resumeProgram puts a program back into the table.
func (e *Engine) resumeProgram(ctx context.Context, l *lease, r cove.Resumer, n keepNote) error {
	x := &execution{e: e, l: l, id: n.Output, follow: true, resumed: true, keep: keepName(n.PID)}
	x.limited, x.over = context.WithCancelCause(context.Background())
	l.mu.Lock()
	x.counted = slices.Contains(l.rec.Counted, n.PID)
	l.stored = slices.DeleteFunc(l.stored, func(name string) bool { return name == outputName(l.id, x.id) })
	l.mu.Unlock()
	limits := n.left(time.Now())
	// What the last server wrote down has no index. All of it comes once more.
	if err := e.removeOutput(outputName(l.id, x.id)); err != nil {
		return err
	}
	x.log = e.logOf(l, x.id, limits, nil, x.flood)
	pr := &process{x: x, ended: make(chan struct{}), info: n.info(x.id)}
	cmd := cove.Command{Limits: limits, Stdout: x.log.Writer(cove.Stdout), Stderr: x.log.Writer(cove.Stderr)}
	if n.Input {
		pr.in = newInput()
		cmd.Stdin = pr.in
	}
	ctx, cancel := context.WithTimeout(ctx, resumeTime)
	defer cancel()
	e.countDisk(l.tenant, keptItem(l.id, x.keep), e.cfg.OutputKept)
	proc, err := r.Resume(ctx, x.keep, cmd)
	if err != nil {
		e.freeDisk(keptItem(l.id, x.keep))
		x.over(nil)
		return errors.Join(err, x.log.Remove())
	}
	x.proc = proc
	x.untrack = l.track(x)
	l.mu.Lock()
	l.procs[n.PID] = pr
	l.rec.LastPID = max(l.rec.LastPID, n.PID)
	l.lastPID = l.rec.LastPID
	l.busy++
	l.mu.Unlock()
	go pr.follow(l) //nolint:gosec // a background program outlives the start of the server
	if x.counted {  // it ended before the last server did, and is told so from the beginning
		select {
		case <-pr.ended:
		case <-ctx.Done():
		}
	}
	return nil
}

// loseProgram frees what cannot be taken up again, and says so.
func (e *Engine) loseProgram(ctx context.Context, l *lease, r cove.Resumer, keep string, cause error) {
	what := "process"
	if isContext(keep) {
		what = "context"
	}
	e.cfg.Logger.WarnContext(ctx, "a program or context is lost", slog.String("kind", what), sessionAttr(l.id), errAttr(cause))
	e.note(ctx, what+".lost", l.view(), keep+": "+cove.MessageOf(cause))
	e.forgetPrograms(ctx, l.id, r, keep)
}

// forgetPrograms lets a provider free programs that nobody can ask for any more.
func (e *Engine) forgetPrograms(ctx context.Context, id cove.ID, r cove.Resumer, keeps ...string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resumeTime)
	defer cancel()
	for _, keep := range keeps {
		if err := r.Forget(ctx, keep); err != nil {
			e.cfg.Logger.WarnContext(ctx, "forget a program; it goes with its sandbox", sessionAttr(id), errAttr(err))
		}
	}
}

// letGo stops waiting for a program that outlives this process.
func (x *execution) letGo() { x.over(errLetGo) }

func (x *execution) isLetGo() bool { return errors.Is(context.Cause(x.limited), errLetGo) }

func shuttingDown() *cove.Error {
	return cove.Errorf(cove.Unavailable, "the server is shutting down").Remedy("try again when it is back")
}

// runsOn is the answer for who waits for a program when the server stops.
func runsOn() error {
	return cove.Wrap(cove.Unavailable, errLetGo, "the server is shutting down; the program runs on").Remedy("ask again when the server is back")
}

// booked writes down that the CPU time of a kept program was added to its
// tenant's, so that the next server does not add it again.
func (e *Engine) booked(ctx context.Context, l *lease, pid cove.PID) {
	l.mu.Lock()
	l.rec.Counted = append(slices.Clone(l.rec.Counted), pid) // somebody may be writing the old one down
	live := l.rec.State == cove.Running || l.rec.State == cove.Paused
	l.mu.Unlock()
	if !live {
		return // what was kept goes with the sandbox
	}
	if err := e.save(ctx, l); err != nil {
		e.cfg.Logger.ErrorContext(ctx, "save a session", errAttr(err), sessionAttr(l.id))
	}
}

// patient is a reader whose failure is the end of the input: only this process
// going away leaves a program's input open.
type patient struct{ r io.Reader }

func (p patient) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if err != nil {
		err = io.EOF
	}
	return n, err
}
