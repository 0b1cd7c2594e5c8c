package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/admission"
)

// Clean rooms are sandboxes of the engine itself, in which code is looked at and
// none ever runs: in the caller's own sandbox, code that ran before could answer
// in place of what looks. There is one for each provider and template, so that the
// interpreter that looks is the one that would run the code, and for each set of
// tools. No record speaks of them: what a crash leaves of them is an orphan, and
// removed as such.

// Bounds on clean rooms.
const (
	maxRooms   = 4
	roomIdle   = 2 * time.Minute
	roomMemory = 512 * cove.MiB
	roomPIDs   = 64
	toolSpace  = 128 * cove.MiB // for tools that come as files
)

// roomKey says what a clean room is like. A tool is a value of its own, since its
// id changes with it.
type roomKey struct {
	provider, template string
	tool               cove.Tool
}

// room is one clean room.
type room struct {
	id      cove.ID
	key     roomKey
	made    chan struct{}     // closed when all up to err is set
	sandbox cove.Sandbox      // nil if it could not be made
	mounted bool              // its tool is where it belongs
	keep    *sync.Map         // what is kept of what runs in it
	err     error             // why
	ticket  *admission.Ticket // its memory counts

	users int       // guarded by cleanRooms.mu
	since time.Time // guarded by cleanRooms.mu; without users
}

// cleanRooms are those of an engine.
type cleanRooms struct {
	mu     sync.Mutex
	open   map[roomKey]*room // guarded by mu; those to be used
	all    map[cove.ID]*room // guarded by mu; also those that are being ended
	closed bool              // guarded by mu
	work   sync.WaitGroup    // what is being made or ended
}

func (c *cleanRooms) init() { c.open, c.all = map[roomKey]*room{}, map[cove.ID]*room{} }

// has reports whether a sandbox is a clean room.
func (c *cleanRooms) has(id cove.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[id] != nil
}

// memory is what clean rooms count for.
func (c *cleanRooms) memory() cove.Bytes {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cove.Bytes(len(c.all)) * roomMemory
}

// enterRoom returns the clean room of a provider and a template with a tool in it, if
// it is not zero, and makes it if there is none. The caller leaves it.
func (e *Engine) enterRoom(ctx context.Context, provider cove.Provider, template string, tool cove.Tool) (*room, error) {
	r, old, err := e.takeRoom(ctx, provider, roomKey{provider.Name(), template, tool})
	if old != nil {
		e.endRoom(ctx, old)
	}
	if err != nil {
		return nil, err
	}
	select {
	case <-r.made:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		err = r.err
	}
	if err != nil {
		e.leaveRoom(ctx, r, false)
		return nil, err
	}
	return r, nil
}

// takeRoom finds a room, or begins to make one. Where there are as many as there
// may be, old is one that nobody uses and that must go.
func (e *Engine) takeRoom(ctx context.Context, provider cove.Provider, key roomKey) (r, old *room, err error) {
	c := &e.rooms
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, shuttingDown()
	}
	if r := c.open[key]; r != nil {
		r.users++
		return r, nil, nil
	}
	if len(c.open) >= maxRooms {
		if old = c.oldest(); old == nil {
			return nil, nil, cove.Errorf(cove.Exhausted, "code for %d templates is being looked at, as many as may be at once", maxRooms).
				Reason(cove.ReasonCapacity).With("retry_after", 1)
		}
		delete(c.open, old.key)
	}
	r = &room{id: cove.NewID(), key: key, made: make(chan struct{}), keep: &sync.Map{}, users: 1}
	c.open[key], c.all[r.id] = r, r
	r.ticket = e.gate.Admit(admission.Claim{Memory: roomMemory, Aside: true})
	c.work.Go(func() { e.makeRoomFor(context.WithoutCancel(ctx), provider, r) })
	return r, old, nil
}

// idle reports whether a room is made and nobody uses it. The caller holds mu.
func (r *room) idle() bool {
	select {
	case <-r.made:
		return r.users == 0
	default:
		return false // ending it would have to wait
	}
}

// oldest is the open room that nobody uses for the longest time, or nil. The
// caller holds mu.
func (c *cleanRooms) oldest() *room {
	var old *room
	for _, r := range c.open {
		if r.idle() && (old == nil || r.since.Before(old.since)) {
			old = r
		}
	}
	return old
}

// makeRoomFor makes the sandbox of a room. It does not end with who asked first:
// others may wait for it.
func (e *Engine) makeRoomFor(ctx context.Context, provider cove.Provider, r *room) {
	ctx, cancel := context.WithTimeoutCause(ctx, e.cfg.StartTimeout,
		cove.Errorf(cove.Timeout, "the sandbox in which code is looked at did not start within %s", e.cfg.StartTimeout))
	defer cancel()
	spec, err := e.roomSpec(ctx, provider, r.key)
	if err == nil {
		r.mounted = len(spec.Volumes) > 0
		r.sandbox, err = provider.Create(ctx, r.id, spec)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	r.err = err
	abandoned := false
	if err != nil {
		e.probes.doubt(provider.Name())
		e.rooms.mu.Lock()
		e.rooms.forget(r) // before anybody hears of it: who tries again gets another one
		abandoned = r.users == 0
		e.rooms.mu.Unlock()
	}
	close(r.made)
	if abandoned {
		e.endRoom(ctx, r)
	}
}

// forget takes a room out of those to be used. The caller holds mu.
func (c *cleanRooms) forget(r *room) {
	if c.open[r.key] == r {
		delete(c.open, r.key)
	}
}

// roomSpec is the sandbox that a room is.
func (e *Engine) roomSpec(ctx context.Context, provider cove.Provider, key roomKey) (cove.Spec, error) {
	s := cove.Spec{
		Provider: key.provider, Template: key.template,
		Resources: cove.Resources{CPUs: 1, Memory: roomMemory, PIDs: roomPIDs},
		Network:   cove.Network{Mode: e.quietest(ctx, key.provider)},
		Workspace: cove.Workspace{Kind: cove.WorkspaceMemory, Size: cove.MiB, Files: 16},
	}
	caps, err := e.probes.of(ctx, provider)
	if err != nil {
		return s, err
	}
	if _, ok := caps.Workspaces[cove.WorkspaceMemory]; !ok {
		s.Workspace.Kind = cove.WorkspaceDisk
	}
	switch {
	case key.tool == cove.Tool{}:
	case caps.Volumes:
		s.Volumes = []cove.Volume{toolVolume(key.tool)}
	default:
		s.Workspace.Size = toolSpace
	}
	return s, caps.Check(key.provider, s)
}

// leaveRoom is told that a caller is done with a room; broken says that nobody
// should use it again.
func (e *Engine) leaveRoom(ctx context.Context, r *room, broken bool) {
	c := &e.rooms
	c.mu.Lock()
	if r.users--; r.users == 0 {
		r.since = time.Now()
	}
	if broken {
		c.forget(r)
	}
	last := r.users == 0 && c.open[r.key] != r
	c.mu.Unlock()
	if last {
		e.endRoom(ctx, r)
	}
}

// endRoom ends a room that is not open any more and has no users.
func (e *Engine) endRoom(ctx context.Context, r *room) {
	<-r.made // who makes it has its own time
	if r.sandbox != nil {
		e.destroy(ctx, r.sandbox)
	}
	r.ticket.Leave()
	e.rooms.mu.Lock()
	defer e.rooms.mu.Unlock()
	delete(e.rooms.all, r.id)
}

// endRooms ends the rooms that nobody has used since a time, and returns how many
// there were.
func (e *Engine) endRooms(ctx context.Context, since time.Time) int64 {
	c := &e.rooms
	c.mu.Lock()
	var idle []*room
	for _, r := range c.open {
		if r.idle() && !r.since.After(since) {
			idle = append(idle, r)
		}
	}
	for _, r := range idle {
		c.forget(r)
	}
	c.mu.Unlock()
	for _, r := range idle {
		e.endRoom(ctx, r)
	}
	return int64(len(idle))
}

// closeRooms ends all rooms, also those that somebody uses.
func (e *Engine) closeRooms(ctx context.Context) {
	c := &e.rooms
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.work.Wait()
	c.mu.Lock()
	var left []*room
	for _, r := range c.all {
		left = append(left, r)
	}
	clear(c.open)
	c.mu.Unlock()
	slices.SortFunc(left, func(a, b *room) int { return a.since.Compare(b.since) })
	for _, r := range left {
		e.endRoom(ctx, r)
	}
}
