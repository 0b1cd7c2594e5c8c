package fake

import (
	"context"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// Keeper holds sandboxes beyond the life of the [Provider] that made them, as a
// process of its own does for real ones. It is in the configuration of one
// provider after the other, on one directory: what the first one left running,
// the next one finds when it attaches.
type Keeper struct {
	mu   sync.Mutex
	held map[cove.ID]*sandbox // guarded by mu
}

// NewKeeper returns a keeper that holds nothing. Close it at the end.
func NewKeeper() *Keeper { return &Keeper{held: map[cove.ID]*sandbox{}} }

// Close ends all that the keeper holds, as when its process dies. Files stay. It
// is idempotent.
func (k *Keeper) Close() {
	k.mu.Lock()
	held := k.held
	k.held = map[cove.ID]*sandbox{}
	k.mu.Unlock()
	for _, box := range held {
		box.stop()
	}
}

// hold remembers a sandbox.
func (k *Keeper) hold(box *sandbox) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held[box.id] = box
}

// find returns what is held under an id, or nil.
func (k *Keeper) find(id cove.ID) *sandbox {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held[id]
}

// drop forgets a sandbox that is gone.
func (k *Keeper) drop(id cove.ID) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.held, id)
}

// cutOff ends what belonged to the provider before: its calls, its watches and
// the programs that were not to be kept.
func (k *Keeper) cutOff() {
	if k == nil {
		return
	}
	k.mu.Lock()
	held := make([]*sandbox, 0, len(k.held))
	for _, box := range k.held {
		held = append(held, box)
	}
	k.mu.Unlock()
	for _, box := range held {
		box.leave()
	}
}

// leave ends what a sandbox does for this provider, and lets the kept programs
// run on.
func (s *sandbox) leave() {
	s.gone.Store(true)
	s.machine.mu.Lock()
	for _, j := range s.machine.kept {
		j.sink.Store(nil)
	}
	s.machine.mu.Unlock()
	s.machine.kill(func(p *proc) bool { return p.job.cmd.Keep == "" }, cove.Killed)
	s.tree.endWatches()
}

// again returns the sandbox for a provider that comes later. One that was paused runs.
func (s *sandbox) again(p *Provider) *sandbox {
	s.machine.resume()
	n := &sandbox{provider: p, id: s.id, spec: s.spec, iso: s.iso, tree: s.tree, machine: s.machine, turn: make(chan struct{}, 1)}
	n.face = n.layers()
	return n
}

// sink is who gets the output of a job.
type sink struct{ stdout, stderr io.Writer }

func (s *sink) writer(stderr bool) io.Writer {
	switch {
	case s == nil:
		return nil
	case stderr:
		return s.stderr
	}
	return s.stdout
}

// Bounds on what is kept of a program.
const (
	maxKeepName = 64
	maxNote     = 16 << 10
	maxRecord   = 16 << 20
)

// record is what a kept program wrote, in the order in which it did. Beyond
// maxRecord only who is there gets it.
type record struct {
	runs []run
	size int
	lost [2]int64 // of stdout and stderr
}

// run is a piece of one stream.
type run struct {
	stderr bool
	data   []byte
}

func (r *record) add(stderr bool, b []byte) {
	kept := min(len(b), maxRecord-r.size)
	side := 0
	if stderr {
		side = 1
	}
	r.lost[side] += int64(len(b) - kept)
	b = b[:kept]
	r.size += len(b)
	if n := len(r.runs); n > 0 && r.runs[n-1].stderr == stderr {
		r.runs[n-1].data = append(r.runs[n-1].data, b...)
		return
	}
	r.runs = append(r.runs, run{stderr, slices.Clone(b)})
}

// replay writes what was recorded. A writer that fails gets nothing more.
func (r *record) replay(to *sink) {
	for _, p := range r.runs {
		if w := to.writer(p.stderr); w != nil {
			if _, err := w.Write(p.data); err != nil {
				return
			}
		}
	}
	for side, n := range r.lost {
		if w, ok := to.writer(side == 1).(interface{ Skip(n int64) }); ok && n > 0 {
			w.Skip(n)
		}
	}
}

// checkKeep reports a name or a note that cannot be held.
func checkKeep(cmd cove.Command) error {
	bad := strings.ContainsFunc(cmd.Keep, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-'
	})
	switch {
	case bad || len(cmd.Keep) > maxKeepName:
		return cove.InvalidField("keep", "%.80q is no name for a program; use up to %d letters, digits and -", cmd.Keep, maxKeepName)
	case len(cmd.Note) > maxNote:
		return cove.InvalidField("note", "is %d bytes long; the most is %d", len(cmd.Note), maxNote)
	}
	return nil
}

// book takes the name of a job that is to be kept.
func (m *machine) book(j *job) error {
	if j.cmd.Keep == "" {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept[j.cmd.Keep] != nil {
		return cove.Errorf(cove.Conflict, "a program is kept as %q already; choose another name", j.cmd.Keep)
	}
	m.kept[j.cmd.Keep] = j
	return nil
}

func (m *machine) unbook(keep string) *job {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.kept[keep]
	delete(m.kept, keep)
	return j
}

// resuming is the layer of a sandbox whose programs can outlive its provider.
type resuming struct {
	cove.Sandbox

	s *sandbox
}

var _ cove.Resumer = resuming{}

func (l resuming) Unwrap() cove.Sandbox { return l.Sandbox }

// Kept implements [cove.Resumer]. Programs come in the order of their start. A paused
// sandbox does not answer, as one whose agent has to.
func (l resuming) Kept(ctx context.Context) iter.Seq2[cove.Kept, error] {
	return func(yield func(cove.Kept, error) bool) {
		m := l.s.machine
		err := l.s.ready(ctx, "kept")
		if err == nil {
			err = m.running(ctx)
		}
		if err != nil {
			yield(cove.Kept{}, err)
			return
		}
		m.mu.Lock()
		jobs := make([]*job, 0, len(m.kept))
		for _, j := range m.kept {
			jobs = append(jobs, j)
		}
		m.mu.Unlock()
		slices.SortFunc(jobs, func(a, b *job) int { return a.begun.Compare(b.begun) })
		for _, j := range jobs {
			if !yield(cove.Kept{Keep: j.cmd.Keep, Note: slices.Clone(j.cmd.Note)}, nil) {
				return
			}
		}
	}
}

// Resume implements [cove.Resumer].
func (l resuming) Resume(ctx context.Context, keep string, cmd cove.Command) (cove.Process, error) {
	if err := l.s.ready(ctx, "resume_program"); err != nil {
		return nil, err
	}
	m := l.s.machine
	m.mu.Lock()
	j := m.kept[keep]
	m.mu.Unlock()
	if j == nil {
		return nil, cove.Errorf(cove.NotFound, "no program is kept as %.80q", keep)
	}
	return j, j.resume(ctx, cmd)
}

// Forget implements [cove.Resumer].
func (l resuming) Forget(ctx context.Context, keep string) error {
	if err := l.s.ready(ctx, "forget"); err != nil {
		return err
	}
	if j := l.s.machine.unbook(keep); j != nil {
		return j.Kill(ctx)
	}
	return nil
}

// resume hands a kept job to another caller.
func (j *job) resume(ctx context.Context, cmd cove.Command) error {
	select {
	case j.out.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	to := &sink{cmd.Stdout, cmd.Stderr}
	j.out.record.replay(to)
	j.sink.Store(to)
	j.out.limit = cmd.Limits.Output
	flooded := j.out.limit > 0 && j.out.written > j.out.limit
	<-j.out.turn
	if flooded {
		j.m.killJob(j, cove.OutputLimit)
	}
	if j.in != nil {
		j.in.take(cmd.Stdin)
	}
	j.limit(cmd.Limits.Wall)
	return nil
}

// limit kills the job after a time, counted from now; 0 is never.
func (j *job) limit(wall time.Duration) {
	j.m.mu.Lock()
	defer j.m.mu.Unlock()
	if j.timer != nil {
		j.timer.Stop()
		j.timer = nil
	}
	if wall > 0 && !j.main.ended {
		j.timer = time.AfterFunc(wall, func() { j.m.killJob(j, cove.TimedOut) })
	}
}
