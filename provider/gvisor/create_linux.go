package gvisor

import (
	"context"
	"errors"
	"maps"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/linux/cgroup"
	"github.com/cove-sandbox/cove/internal/template"
)

// Create implements [cove.Provider].
func (p *Provider) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	if err := p.books.Enter(); err != nil {
		return nil, err
	}
	defer p.books.Leave()
	o, err := p.admit(ctx, id, spec)
	if err != nil {
		return nil, err
	}
	if o.spec.Snapshot != "" {
		return p.createFrom(ctx, id, o)
	}
	if err := p.reserve(id); err != nil {
		return nil, err
	}
	return p.build(ctx, id, o, "")
}

// order is a spec that was looked at.
type order struct {
	h    *hostSide
	caps cove.Capabilities
	spec cove.Spec
	base base
}

// isolation is what the sandbox of an order has.
func (o order) isolation() cove.Isolation { return o.caps.For(o.spec.Workspace.Kind) }

// admit checks what is asked for and fills in what is left open.
func (p *Provider) admit(ctx context.Context, id cove.ID, spec cove.Spec) (order, error) {
	if !id.Valid() {
		return order{}, cove.InvalidField("id", "%.60q is not an id", string(id))
	}
	if err := ctx.Err(); err != nil {
		return order{}, err
	}
	h, err := p.open()
	if err != nil {
		return order{}, err
	}
	spec = spec.Clone()
	if spec.Workspace.Kind == "" {
		spec.Workspace.Kind = cove.WorkspaceMemory
	}
	if spec.Network.Mode == "" {
		spec.Network.Mode = cove.NetworkNone
	}
	if spec.Template == "" {
		spec.Template = Base
	}
	o := order{h: h, spec: spec, caps: h.capabilities()}
	if o.base, err = h.find(spec.Template); err != nil {
		return o, err
	}
	o.caps.Templates = []string{spec.Template}
	for _, check := range []func() error{
		spec.Validate,
		func() error { return fits(spec) },
		func() error { return p.cfg.Egress.Allows(spec.Network) },
		func() error { return o.caps.Check(name, spec) },
		func() error { return checkVolumes(spec.Volumes) },
	} {
		if err := check(); err != nil {
			return o, err
		}
	}
	return o, nil
}

// reserve takes an id.
func (p *Provider) reserve(id cove.ID) error {
	return p.books.Reserve(id, func() bool { return p.host.notes.has(id) })
}

// build makes a sandbox whose id is reserved, from the beginning or from an
// image.
func (p *Provider) build(ctx context.Context, id cove.ID, o order, image string) (cove.Sandbox, error) {
	n := o.note(string(cove.NewID()))
	if err := o.h.notes.write(id, n); err != nil {
		p.books.Release(id)
		return nil, err
	}
	m, err := o.h.make(ctx, n.Bundle, wish{
		base: o.base, places: n.Places, volumes: o.spec.Volumes, image: image,
		limit: func(m *made) error { return m.limit(o.spec, o.isolation()) },
	})
	if err != nil {
		err = joined(err, o.h.notes.remove(id))
		p.books.Release(id)
		return nil, err
	}
	conn, err := m.begin(ctx, m.options(o.spec, o.base.env), image != "")
	if err != nil {
		err = errors.Join(err, m.drop(ctx), o.h.notes.remove(id))
		p.books.Release(id)
		return nil, err
	}
	return p.settle(ctx, id, o, m, conn, n)
}

// note is what is written down of an order before it is carried out.
func (o order) note(bundle string) *note {
	return &note{
		Bundle: bundle, Spec: o.spec, Isolation: o.isolation(), Digest: o.base.digest, Env: o.base.env,
		Places: placesOf(o.spec), Runtime: o.h.version, Host: hostPrint(),
	}
}

// settle makes something that was built the sandbox of an order, or ends it.
func (p *Provider) settle(ctx context.Context, id cove.ID, o order, m *made, conn *guest.Conn, n *note) (cove.Sandbox, error) {
	n.Root, n.Bundle, n.Places = m.root.key, m.name, m.places
	s := newSandbox(p, id, m, n)
	s.conn = conn
	conn.Adopt(m.options(o.spec, o.base.env))
	err := m.limit(o.spec, o.isolation())
	if err == nil {
		err = m.watch(ctx, conn, o.spec)
	}
	if err == nil {
		err = o.h.notes.write(id, n)
	}
	if err == nil {
		err = s.leave(ctx, o.spec.Network)
	}
	if err == nil {
		err = p.books.Put(s.id, s)
	}
	if err == nil {
		go s.watch()
		return s.face(), nil
	}
	_ = conn.Close()
	err = errors.Join(err, s.shut(), m.drop(ctx), o.h.notes.remove(id))
	p.books.Release(id)
	return nil, err
}

// environment is what every program of a sandbox has: what its spec says, over
// what its template says.
func environment(spec, of map[string]string) map[string]string {
	env := map[string]string{
		"HOME": cove.WorkspacePath, "LANG": "C.UTF-8", "LOGNAME": host, "USER": host, "SHELL": "/bin/bash", "PATH": template.Path,
	}
	maps.Copy(env, of)
	maps.Copy(env, spec)
	return env
}

// options is what the host's end of the agent knows of a spec.
func (m *made) options(spec cove.Spec, env map[string]string) guest.Options {
	return guest.Options{
		Env: environment(spec.Env, env), Processes: spec.Resources.PIDs, Memory: spec.Resources.Memory,
	}
}

// watch has the agent end programs that have more memory than they may: gVisor
// itself does not, and the control group can only end all of them.
// The options of the connection must be those of the spec.
func (m *made) watch(ctx context.Context, conn *guest.Conn, spec cove.Spec) error {
	want := inside(spec.Resources.Memory)
	if want == m.watched {
		return nil
	}
	if err := conn.Bound(ctx, want); err != nil {
		return err
	}
	m.watched = want
	return nil
}

// unknownBound is the bound of another sandbox.
const unknownBound cove.Bytes = -1

// What gVisor itself takes of a sandbox's memory, at most, and its threads. A sandbox
// where nothing runs has 14 MiB, and each program some 300 KiB; the rest is what
// programs may take before the agent looks, which ends them when there is less left. The
// control group is the wall behind it: the first of the two ends the sandbox.
const (
	ownMemory  = 128 * cove.MiB
	leastOwn   = 24 * cove.MiB
	ownPart    = 8 // of the memory, beside leastOwn
	ownThreads = 1024
)

// leastMemory is that of a sandbox in which a program can run.
const leastMemory = 32 * cove.MiB

// inside is what programs and files in memory may have of a sandbox's memory.
func inside(memory cove.Bytes) cove.Bytes {
	return memory - min(ownMemory, memory/ownPart+leastOwn, memory)
}

// limit puts the bounds of a spec on the control group, as far as the host can.
func (m *made) limit(spec cove.Spec, has cove.Isolation) error {
	if m.group == nil {
		return nil
	}
	var l cgroup.Limits
	r := spec.Resources
	if r.Memory > 0 && has.Memory == cove.Hard {
		l.Memory = int64(r.Memory) // with the files in memory and gVisor itself
	}
	if has.CPU == cove.Hard {
		l.CPUs = r.CPUs
	}
	if r.PIDs > 0 && m.h.support().PIDs == nil {
		// The kernel inside counts exactly; here every thread of it counts, too.
		l.PIDs = 4*int64(r.PIDs) + ownThreads
	}
	if l == m.limits {
		return nil
	}
	if err := m.group.Set(l); err != nil {
		return cove.Wrap(cove.Unavailable, err, "the limits of a sandbox cannot be set").Remedy("run cove doctor, which says what can be enforced here")
	}
	m.limits = l
	return nil
}
