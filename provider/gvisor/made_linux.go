package gvisor

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/linux/cgroup"
	"github.com/cove-sandbox/cove/internal/linux/userns"
)

// made is a sandbox that the runtime runs, whoever's it is.
type made struct {
	h      *hostSide
	name   string // with the runtime; of its bundle and of its control group
	group  *cgroup.Group
	root   *root
	base   base
	places places
	limits cgroup.Limits // that are set

	watched cove.Bytes // that the agent bounds the memory to; 0 is no bound
}

// wish is what somebody wants to have made.
type wish struct {
	base    base
	places  places
	volumes []cove.Volume
	limit   func(*made) error // puts bounds on it before it begins
	image   string            // it goes on from there; "" begins anew
}

// make makes a sandbox under a name of the runtime. On error nothing is left.
func (h *hostSide) make(ctx context.Context, name string, w wish) (*made, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m := &made{h: h, name: name, base: w.base, places: w.places}
	if w.image != "" { // the agent in it has the bound of where it comes from
		m.watched = unknownBound
	}
	err := m.build(ctx, w)
	if err == nil {
		return m, nil
	}
	if w.image != "" {
		err = explainImage(ctx, err)
	}
	err = joined(explain(ctx, err), m.drop(ctx))
	return nil, err
}

// build does the steps of it.
func (m *made) build(ctx context.Context, w wish) error {
	var err error
	if m.root, err = m.h.rootOf(w.base, w.volumes); err != nil {
		return err
	}
	dir := m.h.bundle(m.name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return diskError(err, "a sandbox cannot be written down")
	}
	p := plan{root: m.root, volumes: w.volumes, mapped: m.h.mapped}
	holder, err := m.h.lease(&p)
	if err != nil {
		return err
	}
	defer func() { _ = holder.Close() }()
	if err := p.write(dir); err != nil {
		return diskError(err, "a sandbox cannot be written down")
	}
	if m.h.groups != nil {
		if m.group, err = m.h.groups.Create(m.name); err != nil {
			return err
		}
	}
	if w.limit != nil {
		if err := w.limit(m); err != nil {
			return err
		}
	}
	return m.h.run.create(ctx, m.name, birth{bundle: dir, image: w.image, group: m.group, holder: holder, still: len(w.volumes) == 0})
}

// lease gives what is planned users of the host that no other sandbox has. It returns
// what holds them for as long as it is open; without users it holds nothing.
func (h *hostSide) lease(p *plan) (holder *os.File, err error) {
	if h.leases == nil {
		if holder, err = os.Open(os.DevNull); err != nil {
			return nil, cove.Wrap(cove.Unavailable, err, "a sandbox has nothing to read from").Remedy("see that there is a /dev/null")
		}
		return holder, nil
	}
	lease, err := h.leases.Take()
	if errors.Is(err, userns.ErrNoUsers) {
		return nil, cove.Wrap(cove.Exhausted, err, "there is no user left for another sandbox").Reason(cove.ReasonCapacity)
	}
	if err != nil {
		return nil, unkept(err)
	}
	p.lease = lease
	return lease.File(), nil
}

// unkept says that users cannot be handed out.
func unkept(err error) error {
	return cove.Wrap(cove.Unavailable, err, "the users of sandboxes cannot be kept apart").Remedy("let root write to %s", filepath.Dir(userns.MachineDir))
}

// furnish gives the sandbox its room for files. Nobody may have used it yet.
func (m *made) furnish(ctx context.Context, to places) error {
	e, err := m.h.run.enter(ctx, m.name, entry{argv: guest.MountArgs(agentName, to.options()...), mount: true})
	if err != nil {
		return err
	}
	said, err := io.ReadAll(io.LimitReader(e, mostSaid))
	if string(said) != guest.Mounted {
		err = errors.Join(err, ctx.Err(), errors.New("the room for files: "+e.errs()))
	}
	e.settle()
	_ = e.Close()
	if string(said) == guest.Mounted {
		m.places = to
		return nil
	}
	return err
}

// begin greets the agent of a sandbox that was just made, and gives the sandbox its
// room for files before; one that goes on has that already.
func (m *made) begin(ctx context.Context, opts guest.Options, goesOn bool) (*guest.Conn, error) {
	if goesOn {
		return m.connect(ctx, opts)
	}
	return m.through(ctx, opts, entry{argv: guest.MountDoorArgs(agentName, m.places.options()...), mount: true})
}

// connect greets the agent.
func (m *made) connect(ctx context.Context, opts guest.Options) (*guest.Conn, error) {
	return m.through(ctx, opts, entry{argv: guest.DoorArgs(agentName)})
}

// through greets the agent through a door.
func (m *made) through(ctx context.Context, opts guest.Options, door entry) (*guest.Conn, error) {
	e, err := m.h.run.enter(ctx, m.name, door)
	if err != nil {
		return nil, explain(ctx, err)
	}
	t, err := guest.Door(ctx, e)
	if err != nil {
		return nil, cove.Wrap(cove.CodeOf(err), errors.Join(err, errors.New(e.errs())), "%s", cove.MessageOf(err))
	}
	e.settle()
	return guest.Connect(ctx, t, opts)
}

// drop ends it, whether anybody still waits or not.
func (m *made) drop(ctx context.Context) error {
	if m.group != nil {
		m.group.Close()
	}
	return m.h.end(ctx, m.name)
}

// explain turns what went wrong with the runtime into something that people can
// read; an error of ours stays what it is.
func explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*cove.Error](err); ok || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	if code, words, ok := cove.DiskFault(err); ok {
		return cove.Wrap(code, err, "gVisor cannot make a sandbox: %s", words)
	}
	return cove.Wrap(cove.Unavailable, err, "gVisor cannot make a sandbox: %.300s", err.Error()).
		Remedy("look at what gVisor says and try again; where this host cannot run it, choose another provider with SANDBOX_PROVIDER")
}

// explainImage says of what went wrong with the runtime that it may be the image.
func explainImage(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*cove.Error](err); ok || ctx.Err() != nil {
		return err
	}
	if _, _, ok := cove.DiskFault(err); ok {
		return err
	}
	return cove.Wrap(cove.Unavailable, err, "gVisor cannot go on with the memory of a snapshot: %.300s", err.Error()).
		Remedy("make the snapshot anew; of this one the files can be had, with another workspace.size_mb")
}

// joined keeps the first error first, and its code.
func joined(err, more error) error {
	if more == nil {
		return err
	}
	return cove.Wrap(cove.CodeOf(err), more, "%s", cove.MessageOf(err))
}
