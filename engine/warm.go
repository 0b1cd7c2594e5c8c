package engine

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// Times of warm interpreters.
const (
	heatTime = 60 * time.Second // for one to become ready
	warmTime = 2 * time.Minute  // for which one waits in a session that does not use it
)

// ember is an interpreter that belongs to nobody yet, or that is on its way.
type ember struct {
	spec  cove.KernelSpec
	ready chan struct{} // closed when it is decided whether there is one

	kernel cove.Kernel // nil where none started; set before ready is closed
}

// hot is a spare in which interpreters wait, or are being started.
type hot struct {
	cove.Spare

	place  *place
	pids   int // that programs of the spare may have
	embers []*ember
	cancel context.CancelFunc // ends the starting
}

// heat begins to start interpreters in a spare, one after the other. It takes
// nothing from the spare: one whose provider cannot start programs ahead, or
// whose interpreters do not start, is a spare as before. gate bounds how many
// spares are heated at once. nil: any number, and whoever claims the spare wants
// the interpreters for sure.
func heat(spare cove.Spare, kernels cove.Kernels, r cove.Resources, gate chan struct{}, specs ...cove.KernelSpec) cove.Spare {
	st, ok := cove.As[cove.SpareStarter](spare)
	if !ok || kernels == nil || len(specs) == 0 {
		return spare
	}
	ctx, cancel := context.WithTimeout(context.Background(), heatTime)
	h := &hot{Spare: spare, place: &place{resources: r, sure: gate == nil, over: make(chan struct{}), spare: st}, pids: r.PIDs, cancel: cancel}
	for _, spec := range specs {
		h.embers = append(h.embers, &ember{spec: spec, ready: make(chan struct{})})
	}
	go h.light(ctx, kernels, gate)
	return h
}

func (h *hot) light(ctx context.Context, kernels cove.Kernels, gate chan struct{}) {
	defer h.cancel()
	if gate != nil {
		select {
		case gate <- struct{}{}:
			defer func() { <-gate }()
		case <-h.place.over:
		case <-ctx.Done():
		}
	}
	for _, m := range h.embers {
		if ctx.Err() == nil && h.place.begin() {
			m.kernel, _ = kernels.Open(ctx, preloading{h.place, m.spec.Preload}, m.spec) // whoever wants one then starts it, and learns why it does not
		}
		close(m.ready)
	}
}

// Claim implements [cove.Spare]. What is being started goes on in the sandbox.
func (h *hot) Claim(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	box, err := h.place.become(func() (cove.Sandbox, error) { return h.Spare.Claim(ctx, id, spec) })
	if err != nil {
		h.put(ctx)
	}
	return box, err
}

// Discard implements [cove.Spare].
func (h *hot) Discard(ctx context.Context) error {
	h.place.end()
	err := h.Spare.Discard(ctx)
	h.put(ctx)
	return err
}

// put ends all interpreters that nobody took.
func (h *hot) put(ctx context.Context) {
	h.cancel()
	closeEmbers(ctx, h.embers)
}

// closeEmbers ends interpreters, also those that are still on their way.
func closeEmbers(ctx context.Context, embers []*ember) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	for _, m := range embers {
		select {
		case <-m.ready:
		case <-ctx.Done():
			continue
		}
		if m.kernel != nil {
			_ = m.kernel.Close(ctx) // one that will not close goes with its sandbox
		}
	}
}

// place is where the programs of an interpreter start: in a spare, and in the
// sandbox that it becomes.
type place struct {
	resources cove.Resources
	sure      bool          // who claims it wants what is started in it
	over      chan struct{} // closed when it is a spare no longer

	mu    sync.Mutex
	spare cove.SpareStarter // nil once it is claimed or discarded; guarded by mu, as all below
	box   cove.Sandbox      // what became of it; nil before, and where nothing did
}

var errNoPlace = errors.New("the spare is gone")

// Start implements [cove.Starter].
func (p *place) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	p.mu.Lock()
	box := p.box
	if box == nil {
		defer p.mu.Unlock()
		if p.spare == nil {
			return nil, errNoPlace
		}
		return p.spare.StartIn(ctx, cmd, p.resources)
	}
	p.mu.Unlock()
	return box.Start(ctx, cmd)
}

// Recorder is what keeps the programs of the sandbox that the spare became; nil where
// nothing does.
func (p *place) Recorder() cove.Recorder {
	p.mu.Lock()
	box := p.box
	p.mu.Unlock()
	r, _ := cove.As[cove.Recorder](box)
	return r
}

// preloading is a place in which programs may have modules imported already.
type preloading struct {
	*place

	modules []string
}

// Start implements [cove.Starter].
func (p preloading) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	p.mu.Lock()
	ahead, ok := cove.As[cove.SparePreloader](p.spare)
	p.mu.Unlock()
	if ok && len(p.modules) > 0 {
		// Not with the lock: the first one takes as long as all imports, and the spare
		// may be claimed meanwhile.
		proc, err := ahead.StartPreloaded(ctx, cmd, p.resources, p.modules)
		if code := cove.CodeOf(err); code != cove.Unsupported && code != cove.Conflict {
			return proc, err
		}
	}
	return p.place.Start(ctx, cmd)
}

// begin reports whether an interpreter should still be started: not where
// somebody has the sandbox already, who may not want one.
func (p *place) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spare != nil || p.sure && p.box != nil
}

// become makes it the place of a sandbox. Nothing starts meanwhile.
func (p *place) become(claim func() (cove.Sandbox, error)) (cove.Sandbox, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leave()
	box, err := claim()
	if err == nil {
		p.box = box
	}
	return box, err
}

func (p *place) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leave()
}

// leave says that it is a spare no longer. The caller holds mu.
func (p *place) leave() {
	if p.spare != nil {
		p.spare = nil
		close(p.over)
	}
}

// claim makes a spare the sandbox of a session, with the interpreters that wait
// in it, unless they do not fit the session.
func (e *Engine) claim(ctx context.Context, l *lease, spare cove.Spare, s *cove.Session) (cove.Sandbox, error) {
	box, err := spare.Claim(ctx, s.ID, s.Spec)
	h, ok := spare.(*hot)
	if err != nil || !ok {
		return box, err
	}
	if !h.fits(s.Spec) || e.cfg.programs(s.Spec, nil) != nil {
		h.put(ctx)
	} else {
		l.mu.Lock()
		l.warm = &warm{embers: h.embers, cancel: h.cancel, since: time.Now()}
		l.mu.Unlock()
	}
	if !e.cfg.Fleeting {
		e.spentBefore(ctx, l, box) // warming up was nobody's doing
	}
	return box, nil
}

// warm are the interpreters of a session that it has not used yet.
type warm struct {
	embers []*ember
	cancel context.CancelFunc
	since  time.Time
}

// interpreter returns one for a context: a warm one, or one that it starts.
func (e *Engine) interpreter(ctx context.Context, l *lease, sandbox cove.Sandbox, spec cove.KernelSpec) (cove.Kernel, error) {
	s := l.view()
	kernels := e.kernels(s.Provider)
	spec.Programs = e.cfg.programs(s.Spec, nil)
	if _, ok := cove.As[cove.Recorder](sandbox); ok {
		spec.Keep = e.cfg.keepContext()
	}
	e.warmth.ran(e.cfg.moldOf(s.Provider, s.Spec), spec.Language)
	if spec.Programs != nil { // one that waits was started without it
		return kernels.Open(ctx, sandbox, spec)
	}
	k, err := l.takeWarm(ctx, spec.Language)
	if err != nil {
		return nil, err
	}
	if k == nil {
		return kernels.Open(ctx, sandbox, spec)
	}
	if err = k.Adopt(ctx, spec.Dir, merged(spec.Env, s.Spec.Env)); err == nil {
		return k, nil
	}
	_ = k.Close(context.WithoutCancel(ctx)) // one that will not close goes with its sandbox
	e.cfg.Logger.DebugContext(ctx, "start an interpreter, because a warm one could not be used", errAttr(err), sessionAttr(l.id), slog.String("language", spec.Language))
	return kernels.Open(ctx, sandbox, spec)
}

// takeWarm returns the warm interpreter of a language, when it is ready; nil if
// there is none.
func (l *lease) takeWarm(ctx context.Context, language string) (cove.Kernel, error) {
	l.mu.Lock()
	var m *ember
	if l.warm != nil {
		if i := slices.IndexFunc(l.warm.embers, func(m *ember) bool { return m.spec.Language == language }); i >= 0 {
			m = l.warm.embers[i]
		}
	}
	l.mu.Unlock()
	if m == nil {
		return nil, nil //nolint:nilnil // none is no error: the caller starts one
	}
	select {
	case <-m.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if !l.dropEmber(m) || m.kernel == nil || !m.kernel.Alive() {
		return nil, nil //nolint:nilnil // as above
	}
	return m.kernel, nil
}

// dropEmber takes an interpreter out of those that wait, and reports whether it
// was still there.
func (l *lease) dropEmber(m *ember) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.warm == nil {
		return false
	}
	i := slices.Index(l.warm.embers, m)
	if i < 0 {
		return false
	}
	l.warm.embers = slices.Delete(slices.Clone(l.warm.embers), i, i+1)
	return true
}

// cool ends the interpreters that wait in a session.
func (l *lease) cool(ctx context.Context) {
	l.mu.Lock()
	w := l.warm
	l.warm = nil
	l.mu.Unlock()
	if w == nil {
		return
	}
	w.cancel()
	closeEmbers(ctx, w.embers)
}

// coolOff ends interpreters that no session has used for a while: they cost
// memory.
func (e *Engine) coolOff(ctx context.Context, now time.Time) {
	for _, l := range e.snapshotLeases() {
		l.mu.Lock()
		old := l.warm != nil && l.rec.State == cove.Running && now.Sub(l.warm.since) >= warmTime
		l.mu.Unlock()
		if old {
			l.cool(ctx)
		}
	}
}
