package engine

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/admission"
)

// Places are sandboxes of the engine in which questions to data run. A place belongs
// to one caller and one kind of question, so that nobody finds in it what another
// has left, and it is kept for a while, since what makes an answer fast is loaded in
// it. No record speaks of places: what a crash leaves of them is an orphan.

// Bounds on places.
const (
	maxPlaces       = 16
	maxTenantPlaces = 4
	placeIdle       = 5 * time.Minute
	placeWait       = 10 * time.Second // for one to become free
)

// placeKey says whose a place is, and what it is like.
type placeKey struct{ tenant, owner, what string }

// runPlace is one place.
type runPlace struct {
	id      cove.ID
	key     placeKey
	once    bool // it is for one question
	began   time.Time
	sandbox cove.RunSandbox // set by who makes it, before anybody else can have it
	ticket  *admission.Ticket

	memory cove.Bytes // guarded by runPlaces.mu, as all below
	busy   bool       // somebody makes or uses it
	over   bool       // nobody may use it again
	ended  bool       // somebody ends it
	since  time.Time  // when it became free
}

// runPlaces are those of an engine.
type runPlaces struct {
	mu      sync.Mutex
	all     map[cove.ID]*runPlace // guarded by mu; also those that are being ended
	changed chan struct{}         // guarded by mu; closed when one became free or went
	closed  bool                  // guarded by mu
	work    sync.WaitGroup        // what is being made
}

func (c *runPlaces) init() { c.all, c.changed = map[cove.ID]*runPlace{}, make(chan struct{}) }

// has reports whether a sandbox is a place.
func (c *runPlaces) has(id cove.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[id] != nil
}

// memory is what places count for.
func (c *runPlaces) memory() cove.Bytes {
	c.mu.Lock()
	defer c.mu.Unlock()
	var sum cove.Bytes
	for _, p := range c.all {
		sum += p.memory
	}
	return sum
}

// wake tells those who wait that something changed. The caller holds mu.
func (c *runPlaces) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// free reports whether nobody uses a place, and somebody may. The caller holds mu.
func (p *runPlace) free() bool { return !p.busy && !p.over }

// oldest is the free place that nobody has used for the longest time, of one tenant
// or of all if it is "". The caller holds mu.
func (c *runPlaces) oldest(tenant string) *runPlace {
	var old *runPlace
	for _, p := range c.all {
		if p.free() && (tenant == "" || tenant == p.key.tenant) && (old == nil || p.since.Before(old.since)) {
			old = p
		}
	}
	return old
}

// find takes the free place of a key that was used last, or nil. The caller holds mu.
func (c *runPlaces) find(key placeKey) *runPlace {
	var found *runPlace
	for _, p := range c.all {
		if p.key == key && p.free() && !died(p.sandbox.Sandbox) && (found == nil || p.since.After(found.since)) {
			found = p
		}
	}
	if found != nil {
		found.busy = true
	}
	return found
}

// died reports whether a sandbox is known to be dead.
func died(s cove.Sandbox) bool {
	m, ok := cove.As[cove.Mortal](s)
	if !ok {
		return false
	}
	select {
	case <-m.Died():
		return true
	default:
		return false
	}
}

// takePlace returns a place for one caller alone: one that is there, or one that it
// makes, or one that becomes free within placeWait.
func (h runHost) takePlace(ctx context.Context, want cove.RunPlace) (p *runPlace, waited time.Duration, err error) {
	c := &h.e.places
	key := placeKey{h.p.Tenant, h.p.Name, fmt.Sprintf("%q", []any{want.Key, want.Provider, want.Flavor, want.Template, want.Volumes, want.Tools})}
	timer := time.NewTimer(placeWait)
	defer timer.Stop()
	for {
		got, err := c.take(key, want.Key == "")
		switch {
		case err != nil:
			return nil, waited, err
		case got.old != nil:
			h.e.endPlace(ctx, got.old)
			continue
		case got.fresh:
			return got.place, waited, h.furnish(ctx, got.place, want)
		case got.place != nil:
			return got.place, waited, nil
		}
		began := time.Now()
		select {
		case <-got.wait:
			waited += time.Since(began)
		case <-timer.C:
			return nil, waited, cove.Errorf(cove.Exhausted, "questions to data have as many sandboxes as they may, and none became free within %s", placeWait).
				Reason(cove.ReasonCapacity).With("retry_after", 1)
		case <-ctx.Done():
			return nil, waited, ctx.Err()
		}
	}
}

// taken is what came of looking for a place: one that the caller has, which is to be
// made if it is fresh; or one that must go before there can be another; or neither,
// and something will happen on wait.
type taken struct {
	place *runPlace
	fresh bool
	old   *runPlace
	wait  <-chan struct{}
}

// take finds a free place, or room for one.
func (c *runPlaces) take(key placeKey, once bool) (taken, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return taken{}, shuttingDown()
	}
	if !once {
		if p := c.find(key); p != nil {
			return taken{place: p}, nil
		}
	}
	mine := 0
	for _, p := range c.all {
		if p.key.tenant == key.tenant {
			mine++
		}
	}
	if len(c.all) < maxPlaces && mine < maxTenantPlaces {
		p := &runPlace{id: cove.NewID(), key: key, once: once, busy: true, began: time.Now()}
		c.all[p.id] = p
		c.work.Add(1)
		return taken{place: p, fresh: true}, nil
	}
	tenant := ""
	if mine >= maxTenantPlaces {
		tenant = key.tenant
	}
	old := c.oldest(tenant)
	if old != nil {
		old.over = true
	}
	return taken{old: old, wait: c.changed}, nil
}

// furnish makes the sandbox of a fresh place. On error nothing of it is left.
func (h runHost) furnish(ctx context.Context, p *runPlace, want cove.RunPlace) error {
	defer h.e.places.work.Done()
	err := h.build(ctx, p, want)
	if err != nil {
		h.e.endPlace(ctx, p)
	}
	return err
}

func (h runHost) build(ctx context.Context, p *runPlace, want cove.RunPlace) error {
	e := h.e
	by, spec, mounted, err := h.placeSpec(ctx, want)
	if err != nil {
		return notMade(err)
	}
	quota, err := e.tenants.check(ctx, h.p.Tenant)
	if err != nil {
		return err
	}
	memory := spec.Resources.Memory
	claim := admission.Claim{Tenant: h.p.Tenant, Memory: memory, Quota: quota, Aside: true}
	ticket, full := e.gate.Try(claim)
	if full != nil && e.endSpare(ctx) {
		ticket, full = e.gate.Try(claim)
	}
	if full != nil {
		return full
	}
	p.ticket = ticket
	e.places.mu.Lock()
	p.memory = memory
	e.places.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, e.cfg.StartTimeout,
		cove.Errorf(cove.Timeout, "the sandbox did not start within %s", e.cfg.StartTimeout))
	defer cancel()
	sandbox, err := by.Create(ctx, p.id, spec)
	if err != nil {
		e.probes.doubt(by.Name())
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return notMade(err)
	}
	p.sandbox = cove.RunSandbox{
		Sandbox: sandbox, Provider: by.Name(), Instead: by.instead, Template: spec.Template,
		Memory: spec.Resources.Memory, CPUs: spec.Resources.CPUs, Mounted: mounted, Keep: &sync.Map{},
	}
	return nil
}

// placeSpec is the sandbox that a place is, and who makes it. The caller's key says
// what it would of a session; what the operator mounts everywhere is not there.
func (h runHost) placeSpec(ctx context.Context, want cove.RunPlace) (choice, cove.Spec, bool, error) {
	e, own := h.e, h.p.Defaults
	template, err := e.templateFor(h.p.Tenant, want.Template)
	if err != nil {
		return choice{}, cove.Spec{}, false, err
	}
	s := cove.Spec{
		Provider: cmp.Or(want.Provider, own.Provider), Flavor: cmp.Or(want.Flavor, own.Flavor, e.cfg.Defaults.Flavor),
		Template: template, Resources: own.Resources, Workspace: e.cfg.Defaults.Workspace,
		Network: cove.Network{Mode: cove.NetworkNone}, Require: own.Require,
	}
	s.Network.Mode = e.quietest(ctx, cmp.Or(s.Provider, e.cfg.Provider))
	or(&s.Require.Isolation, e.cfg.Defaults.Require.Isolation)
	if _, ok := e.cfg.Flavors[s.Flavor]; !ok {
		return choice{}, s, false, cove.InvalidField("flavor", "%.40q is unknown; use one of %s", s.Flavor, e.cfg.flavorNames())
	}
	s.Resources = e.cfg.resources(s)
	if err := fitWorkspace(&s, false); err != nil {
		return choice{}, s, false, err
	}
	if s.Template == "" {
		s.Template = e.dataTemplate(ctx, cmp.Or(s.Provider, e.cfg.Provider))
	}
	by, err := e.choose(ctx, s)
	if err != nil && want.Template == "" && s.Template != e.cfg.Defaults.Template {
		s.Template = e.cfg.Defaults.Template
		by, err = e.choose(ctx, s)
	}
	if err != nil {
		return choice{}, s, false, err
	}
	caps, err := e.probes.of(ctx, by.Provider)
	if err != nil {
		return choice{}, s, false, err
	}
	if caps.Volumes {
		s.Volumes = append(s.Volumes, want.Volumes...)
		for _, t := range want.Tools {
			s.Volumes = append(s.Volumes, toolVolume(t))
		}
	}
	return by, s, caps.Volumes, s.Validate()
}

// dataTemplate is the template for questions to data, where a provider has it.
func (e *Engine) dataTemplate(ctx context.Context, provider string) string {
	const name = "data"
	if p, ok := e.probes.provider(provider); ok {
		if caps, err := e.probes.of(ctx, p); err == nil && slices.Contains(caps.Templates, name) {
			return name
		}
	}
	return e.cfg.Defaults.Template
}

// quietest is the network of what answers questions: none, unless the provider cannot
// do that and the operator lets it answer all the same.
func (e *Engine) quietest(ctx context.Context, provider string) cove.NetworkMode {
	if p, ok := e.probes.provider(provider); ok && e.cfg.OpenPlaces {
		if caps, err := e.probes.of(ctx, p); err == nil && !slices.Contains(caps.Networks, cove.NetworkNone) {
			return cove.NetworkOpen
		}
	}
	return cove.NetworkNone
}

// leavePlace is told that a question is over; broken says that nobody should use the
// place again.
func (e *Engine) leavePlace(ctx context.Context, p *runPlace, broken bool) {
	c := &e.places
	c.mu.Lock()
	p.busy, p.since = false, time.Now()
	p.over = p.over || p.once || broken || c.closed
	over := p.over
	if !over {
		c.wake()
	}
	c.mu.Unlock()
	if over {
		e.endPlace(ctx, p)
	}
}

// endPlace ends a place that nobody may use any more, once.
func (e *Engine) endPlace(ctx context.Context, p *runPlace) {
	e.places.mu.Lock()
	ended := p.ended
	p.over, p.ended = true, true
	e.places.mu.Unlock()
	if ended {
		return
	}
	if s := p.sandbox.Sandbox; s != nil {
		e.bookPlace(ctx, p)
		e.destroy(ctx, s)
	}
	p.ticket.Leave()
	e.places.mu.Lock()
	defer e.places.mu.Unlock()
	delete(e.places.all, p.id)
	e.places.wake()
}

// bookPlace adds what a place has taken to what its tenant consumed.
func (e *Engine) bookPlace(ctx context.Context, p *runPlace) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTime)
	defer cancel()
	held := time.Since(p.began)
	by := cove.Consumption{Held: held, MemoryTime: cove.MemoryTimeOf(p.memory, held)}
	if u, err := p.sandbox.Usage(ctx); err == nil {
		by.CPU = u.CPU
	}
	e.tenants.add(p.key.tenant, by)
}

// endPlaces ends the places that nobody has used since a time, and returns how many
// there were.
func (e *Engine) endPlaces(ctx context.Context, since time.Time) int64 {
	return e.endPlacesOf(ctx, func(p *runPlace) bool { return p.free() && !p.since.After(since) })
}

// endSpare ends what the engine keeps for itself and nobody uses now, for the room
// that it takes. It reports whether there was anything.
func (e *Engine) endSpare(ctx context.Context) bool {
	now := time.Now()
	return e.endPlaces(ctx, now)+e.endRooms(ctx, now) > 0
}

// endOwned ends the places of a caller; those in use when the question is over.
func (e *Engine) endOwned(ctx context.Context, owner string) {
	e.endPlacesOf(ctx, func(p *runPlace) bool {
		p.over = p.over || p.key.owner == owner && !p.free()
		return p.key.owner == owner && p.free()
	})
}

// endPlacesOf ends the places that which selects.
func (e *Engine) endPlacesOf(ctx context.Context, which func(*runPlace) bool) int64 {
	c := &e.places
	c.mu.Lock()
	var list []*runPlace
	for _, p := range c.all {
		if which(p) {
			p.over = true
			list = append(list, p)
		}
	}
	c.mu.Unlock()
	for _, p := range list {
		e.endPlace(ctx, p)
	}
	return int64(len(list))
}

// closePlaces ends all places, also those that somebody uses.
func (e *Engine) closePlaces(ctx context.Context) {
	c := &e.places
	c.mu.Lock()
	c.closed = true
	c.wake()
	c.mu.Unlock()
	c.work.Wait()
	e.endPlacesOf(ctx, func(*runPlace) bool { return true })
}

// toolVolume shows a tool where every sandbox has it, and nothing beside it.
func toolVolume(t cove.Tool) cove.Volume {
	return cove.Volume{Source: filepath.Join(t.Dir, t.Name), Target: path.Join(cove.ToolPath, t.Name)}
}
