//go:build linux

package docker

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/moby/moby/client"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
)

// usualPath is where programs are, in an image that does not say.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment is what every program of a sandbox has: what its spec says, over
// what its image says.
func environment(spec, image map[string]string) map[string]string {
	env := map[string]string{"LANG": "C.UTF-8", "PATH": usualPath}
	maps.Copy(env, image)
	maps.Copy(env, map[string]string{"HOME": cove.WorkspacePath, "LOGNAME": hostname, "USER": hostname, "SHELL": "/bin/bash"})
	maps.Copy(env, spec)
	return env
}

// admit checks a spec, and returns it with nothing left open.
func (p *Provider) admit(ctx context.Context, id cove.ID, spec cove.Spec) (*facts, cove.Capabilities, cove.Spec, error) {
	none := cove.Capabilities{}
	if !id.Valid() {
		return nil, none, spec, cove.InvalidField("id", "%.60q is not an id", string(id))
	}
	if err := ctx.Err(); err != nil {
		return nil, none, spec, err
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
		return nil, none, spec, err
	}
	if err := p.cfg.Egress.Allows(spec.Network); err != nil {
		return nil, none, spec, err
	}
	f, err := p.ask(ctx, factsAge)
	if err != nil {
		return nil, none, spec, err
	}
	caps := p.capabilities(f)
	if err := caps.Check(name, spec); err != nil {
		return nil, caps, spec, err
	}
	if w := spec.Workspace; w.Kind == cove.WorkspaceMemory && w.Size > f.memory && f.memory > 0 {
		return nil, caps, spec, cove.Errorf(cove.Unsupported, "workspace.size_mb: %s are more than the %s of memory that the engine's machine has", w.Size, f.memory).
			With("field", "workspace.size_mb").Remedy("ask for less")
	}
	return f, caps, spec, checkVolumes(f, spec.Volumes)
}

// Create implements [cove.Provider].
func (p *Provider) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	if err := p.books.Enter(); err != nil {
		return nil, err
	}
	defer p.books.Leave()
	return p.create(ctx, id, spec)
}

func (p *Provider) create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	f, caps, spec, err := p.admit(ctx, id, spec)
	if err != nil {
		return nil, err
	}
	files, err := p.saved(spec.Snapshot)
	if err != nil {
		return nil, err
	}
	defer files.close()
	if err := p.books.Reserve(id, nil); err != nil {
		return nil, err
	}
	made, err := p.make(ctx, f, prefix+string(id), spec.Template, p.shapeOf(f, spec), spec.Volumes)
	if err != nil {
		p.books.Release(id)
		return nil, err
	}
	return p.settle(ctx, made, id, spec, caps, files)
}

// made is a container whose agent answers.
type made struct {
	container string
	volume    string // its workspace; "" if that is in memory
	image     image
	shape     shape
	conn      *guest.Conn
	lost      *loss
}

// make makes a container, starts it and greets its agent. On error nothing of it is
// left.
func (p *Provider) make(ctx context.Context, f *facts, name, template string, s shape, volumes []cove.Volume) (*made, error) {
	if err := p.sweep(ctx); err != nil {
		return nil, err
	}
	e, owner, err := p.mine()
	if err != nil {
		return nil, err
	}
	volume, err := p.workspace(ctx, e, owner, f, s.workspace)
	if err != nil {
		return nil, err
	}
	i := f.images[template]
	var made *made
	for range 2 {
		if err = p.bring(ctx, f); err != nil {
			break
		}
		made, err = p.try(ctx, e, client.ContainerCreateOptions{Name: name, Config: p.config(f, owner, volume, i), HostConfig: p.host(f, s, volume, volumes)})
		if !errors.Is(err, errNoAgent) {
			break
		}
		p.forgetAgent() // somebody removed its volume
	}
	if err != nil {
		p.doubt(err)
		return nil, p.undoVolume(ctx, volume, err)
	}
	made.volume, made.image, made.shape = volume, i, s
	return made, nil
}

// doubt forgets what is known of an engine that does not behave so.
func (p *Provider) doubt(err error) {
	if cove.CodeOf(err) != cove.Unavailable {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.facts = nil
}

var errNoAgent = errors.New("the volume holds no agent")

// try makes a container once.
func (p *Provider) try(ctx context.Context, e *engine, o client.ContainerCreateOptions) (*made, error) {
	do, cancel := within(ctx, makePatience)
	defer cancel()
	c, err := e.ContainerCreate(do, o)
	if err != nil {
		if isTaken(err) {
			return nil, cove.Wrap(cove.Conflict, err, "a container with the name %s exists already", o.Name)
		}
		// It may have been made although nobody heard of it.
		return nil, p.undo(ctx, o.Name, e.fault(ctx, err, "make a container"))
	}
	m := &made{container: c.ID, lost: &loss{}}
	if _, err = e.ContainerStart(do, c.ID, client.ContainerStartOptions{}); err != nil {
		if text := err.Error(); strings.Contains(text, agentName) && (strings.Contains(text, "no such file") || strings.Contains(text, "not found in $PATH")) {
			return nil, p.undo(ctx, c.ID, cove.Wrap(cove.Unavailable, errors.Join(err, errNoAgent), "the agent is not in the sandbox").Remedy("try again"))
		}
		return nil, p.undo(ctx, c.ID, e.fault(ctx, err, "start a container"))
	}
	p.placed(c.ID)
	if m.conn, err = p.greetAgent(do, e, m, guest.Options{}); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, p.undo(ctx, c.ID, err)
	}
	return m, nil
}

// undo removes what was made of a container that cannot be had, and keeps the
// reason.
func (p *Provider) undo(ctx context.Context, container string, err error) error {
	away, cancel := last(ctx)
	defer cancel()
	return joined(err, p.remove(away, container, ""))
}

// undoMade is undo for one that is whole.
func (p *Provider) undoMade(ctx context.Context, m *made, err error) error {
	_ = m.conn.Close()
	return p.undoVolume(ctx, m.volume, p.undo(ctx, m.container, err))
}

// joined keeps the first error first, and what it says.
func joined(err, more error) error {
	if more == nil {
		return err
	}
	both := cove.Wrap(cove.CodeOf(err), errors.Join(err, more), "%s", cove.MessageOf(err))
	if reason := cove.ReasonOf(err); reason != "" {
		both = both.Reason(reason)
	}
	if remedy := cove.RemedyOf(err); remedy != "" {
		both = both.Remedy("%s", remedy)
	}
	return both
}

// settle makes a container a sandbox with an id and a spec. On error nothing of it
// is left.
func (p *Provider) settle(ctx context.Context, m *made, id cove.ID, spec cove.Spec, caps cove.Capabilities, files *archive) (cove.Sandbox, error) {
	isolation := caps.For(spec.Workspace.Kind)
	if spec.Network.Mode == cove.NetworkOpen {
		isolation.Network = cove.Absent
	}
	isolation.Policy = m.conn.Policy()
	p.policy.Store(&isolation.Policy)
	s := p.box(m, id, note{Container: m.container, Volume: m.volume, Spec: spec, Isolation: isolation, Env: m.image.env, Memory: m.shape.resources.Memory})
	err := p.writeNote(id, s.note)
	if err == nil {
		err = files.unpack(ctx, m.conn.Files())
	}
	if err == nil {
		err = s.depart(ctx, spec.Network)
	}
	if err == nil {
		err = p.books.Put(id, s)
	}
	if err != nil {
		s.way.shut()
		err = p.undoMade(ctx, m, err)
		err = joined(err, p.dropNote(id))
		p.books.Release(id)
		return nil, err
	}
	p.mu.Lock()
	p.usual[kind{spec.Template, spec.Workspace.Kind}] = m.shape
	p.mu.Unlock()
	s.begin()
	return s.face(), nil
}

// box is a sandbox that nobody has yet.
func (p *Provider) box(m *made, id cove.ID, n note) *sandbox {
	s := &sandbox{p: p, id: id, container: m.container, note: n, died: make(chan struct{}), pausing: newTurn()}
	s.conn.Store(m.conn)
	m.lost.of(s, m.conn)
	m.conn.Adopt(s.options())
	return s
}
