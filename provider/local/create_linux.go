package local

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/linux/cgroup"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// Create implements [cove.Provider].
func (p *Provider) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	if err := p.books.Enter(); err != nil {
		return nil, err
	}
	defer p.books.Leave()
	h, caps, spec, err := p.admit(ctx, id, spec)
	if err != nil {
		return nil, err
	}
	if err := p.reserve(id); err != nil {
		return nil, err
	}
	fill, err := p.furnish(ctx, spec)
	if err != nil {
		p.books.Release(id)
		return nil, err
	}
	return p.build(ctx, h, id, spec, caps, fill)
}

// build makes a sandbox whose id is reserved, with the files that fill gives it;
// nil leaves it empty.
func (p *Provider) build(ctx context.Context, h *hostSide, id cove.ID, spec cove.Spec, caps cove.Capabilities, fill func(context.Context, *shelf) error) (cove.Sandbox, error) {
	m, err := h.make(ctx, id, wish{template: spec.Template, places: placesOf(spec), volumes: spec.Volumes, disk: spec.Workspace.Kind == cove.WorkspaceDisk})
	if err == nil && fill != nil {
		if err = fill(ctx, m.shelf); err != nil {
			err = joined(err, m.drop(context.WithoutCancel(ctx)))
		}
	}
	if err != nil {
		p.books.Release(id)
		return nil, err
	}
	return p.settle(ctx, m, nil, id, spec, caps)
}

// admit checks what is asked for and fills in what is left open.
func (p *Provider) admit(ctx context.Context, id cove.ID, spec cove.Spec) (*hostSide, cove.Capabilities, cove.Spec, error) {
	if !id.Valid() {
		return nil, cove.Capabilities{}, spec, cove.InvalidField("id", "%.60q is not an id", string(id))
	}
	if err := ctx.Err(); err != nil {
		return nil, cove.Capabilities{}, spec, err
	}
	h, err := p.open()
	if err != nil {
		return nil, cove.Capabilities{}, spec, err
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
	if err := spec.Validate(); err != nil {
		return nil, cove.Capabilities{}, spec, err
	}
	if spec.Snapshot != "" && !h.layers() {
		return nil, cove.Capabilities{}, spec, cove.Errorf(cove.Unsupported, "provider %s has no snapshots", name)
	}
	if spec.Snapshot != "" && spec.Workspace.Kind == cove.WorkspaceDisk {
		return nil, cove.Capabilities{}, spec, flatError()
	}
	if err := fits(spec.Workspace); err != nil {
		return nil, cove.Capabilities{}, spec, err
	}
	if err := h.checkVolumes(spec); err != nil {
		return nil, cove.Capabilities{}, spec, err
	}
	if err := p.cfg.Egress.Allows(spec.Network); err != nil {
		return nil, cove.Capabilities{}, spec, err
	}
	caps := h.capabilities()
	if spec.Template != Base {
		if _, err := h.findTemplate(spec.Template); err != nil {
			return nil, cove.Capabilities{}, spec, err
		}
		caps.Templates = []string{spec.Template}
	}
	return h, caps, spec, caps.Check(name, spec)
}

// fits refuses a workspace in memory that is more than this machine has: its
// size would be a promise, and its bound none.
func fits(w cove.Workspace) error {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return cove.Wrap(cove.Internal, err, "the memory of this machine cannot be read")
	}
	all := cove.Bytes(uint64(info.Totalram) * uint64(info.Unit)) //nolint:gosec,unconvert // of a machine; 32 bits on some
	if w.Kind == cove.WorkspaceMemory && w.Size > all {
		return cove.Errorf(cove.Unsupported, "workspace.size_mb: %s are more than the %s of memory that this machine has", w.Size, all).
			With("field", "workspace.size_mb").Remedy("ask for less")
	}
	return nil
}

// placesOf is the room for files. In memory it must have bounds.
func placesOf(spec cove.Spec) fence.Places {
	workspace, temp := spec.Room()
	p := fence.Places{
		Workspace: fence.Bounds{Size: int64(workspace), Files: spec.Workspace.Files},
		Temp:      fence.Bounds{Size: int64(temp), Files: tempFiles},
	}
	if p.Workspace.Files == 0 {
		p.Workspace.Files = workspaceFiles
	}
	return p
}

// reserve takes an id.
func (p *Provider) reserve(id cove.ID) error {
	return p.books.Reserve(id, func() bool { return p.host.keeping.has(id) })
}

// settle makes something that was built the sandbox of a spec, or ends it. conn
// is nil where the agent was not greeted yet.
func (p *Provider) settle(ctx context.Context, m *made, conn inside, id cove.ID, spec cove.Spec, caps cove.Capabilities) (cove.Sandbox, error) {
	s := &sandbox{p: p, id: id, died: make(chan struct{}), conn: conn, groups: m.group, shelf: m.shelf, disk: m.disk, made: m, isolation: caps.For(spec.Workspace.Kind), env: spec.Env}
	if m.group != nil && m.host.support().Freeze == nil {
		s.freezer = newFreezer(m.group)
	}
	if m.disk != nil && !m.disk.image {
		s.soft = &softBounds{s: s, dir: m.disk.inner(), bounds: placesOf(spec).Workspace}
	}
	err := m.limit(spec, s.isolation)
	if err == nil && !m.solo {
		m.held, err = p.reserveHeld(ctx, m.host, id)
		if m.held != nil {
			m.maker.keep()
		}
	}
	opts := m.options(spec, m.env, m.kit.searched())
	switch {
	case err != nil:
	case conn != nil:
		conn.Adopt(opts)
	default:
		s.conn, err = m.connect(ctx, opts)
	}
	s.agent, _ = s.conn.(*guest.Conn)
	if s.agent != nil {
		s.isolation.Policy = s.agent.Policy()
	}
	if err == nil {
		err = s.hold(ctx, spec)
	}
	if err == nil {
		err = s.leave(ctx, spec.Network)
	}
	if err == nil {
		err = p.books.Put(s.id, s)
	}
	if err == nil {
		go s.watch()
		if s.soft != nil {
			go s.soft.watch()
		}
		return s.face(), nil
	}
	if s.way != nil {
		err = errors.Join(err, s.way.gate.Close())
	}
	if s.conn != nil {
		_ = s.conn.Close()
	}
	p.books.Release(id)
	return nil, errors.Join(err, m.drop(context.WithoutCancel(ctx)))
}

// options is what the host's end of the agent knows of a spec.
// Interpreters are searched in some directories beside the usual ones.
func (m *made) options(spec cove.Spec, template map[string]string, searched []string) guest.Options {
	o := guest.Options{Env: environment(spec.Env, template, searched), OutOfMemory: m.famine()}
	if m.held != nil {
		o.Holder = m.held
	}
	if !m.host.cfg.weak.processes {
		o.Processes = spec.Resources.PIDs
	}
	return o
}

// searched are the directories of interpreters outside of /usr.
func (k *kit) searched() []string {
	k.host.mu.Lock()
	defer k.host.mu.Unlock()
	return k.path
}

// agentThreads is room for the agent's own threads, which are in the group too:
// the group bounds what the limit of the user bounds exactly, should that fail.
const agentThreads = 32

// limit puts the bounds of a spec on the control group, as far as the host can.
func (m *made) limit(spec cove.Spec, has cove.Isolation) error {
	if m.group == nil {
		return nil
	}
	var l cgroup.Limits
	r := spec.Resources
	if r.Memory > 0 && has.Memory == cove.Hard {
		l.Memory = int64(r.Memory) // with the files in memory
	}
	if has.CPU == cove.Hard {
		l.CPUs = r.CPUs
	}
	if r.PIDs > 0 && m.host.support().PIDs == nil && !m.host.cfg.weak.processes {
		l.PIDs = int64(r.PIDs) + agentThreads
	}
	if l == m.limits { // none, or those of a spare that was warmed
		return nil
	}
	if err := m.group.Set(l); err != nil {
		return cove.Wrap(cove.Unavailable, err, "the limits of a sandbox cannot be set").Remedy("run cove doctor, which says what can be enforced here")
	}
	m.limits = l
	return nil
}
