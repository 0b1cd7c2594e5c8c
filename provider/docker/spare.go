//go:build linux

package docker

import (
	"context"
	"strings"
	"sync"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/cove-sandbox/cove"
)

// spare is a container that waits for its id. It is made with what was asked for
// last: what a container is made with is slow to change, or cannot be.
type spare struct {
	p    *Provider
	mold cove.Mold
	made *made

	mu   sync.Mutex
	used bool
}

// Prepare implements [cove.Preparer].
func (p *Provider) Prepare(ctx context.Context, m cove.Mold) (cove.Spare, error) {
	if err := p.books.Enter(); err != nil {
		return nil, err
	}
	defer p.books.Leave()
	f, _, spec, err := p.admit(ctx, cove.NewID(), cove.Spec{Template: m.Template, Workspace: cove.Workspace{Kind: m.Workspace}, Resources: m.Resources})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	like, known := p.usual[kind{spec.Template, spec.Workspace.Kind}]
	p.mu.Unlock()
	if !known || m.Resources != (cove.Resources{}) {
		like = p.shapeOf(f, spec)
	}
	built, err := p.make(ctx, f, sparePrefix+strings.ToLower(string(cove.NewID())), spec.Template, like, nil)
	if err != nil {
		return nil, err
	}
	s := &spare{p: p, mold: m, made: built}
	if err := p.books.Keep(s); err != nil {
		return nil, joined(err, s.free(ctx))
	}
	return s, nil
}

// use reports whether the spare was still to be had.
func (s *spare) use() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.used
	s.used = true
	return first
}

// Claim implements [cove.Spare].
func (s *spare) Claim(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	p := s.p
	if err := p.books.Enter(); err != nil {
		return nil, joined(err, s.Discard(ctx))
	}
	defer p.books.Leave()
	if !s.use() {
		return nil, cove.Errorf(cove.Conflict, "the spare is used up; prepare another")
	}
	f, caps, spec, err := p.admit(ctx, id, spec)
	if err == nil && (spec.Template != s.mold.Template || spec.Workspace.Kind != s.mold.Workspace) {
		err = cove.Errorf(cove.Invalid, "the spec does not fit the spare; create a sandbox instead")
	}
	if err != nil {
		return nil, joined(err, s.free(ctx))
	}
	if !s.fits(f, spec) {
		if err := s.free(ctx); err != nil {
			return nil, err
		}
		return p.create(ctx, id, spec)
	}
	if err := p.books.Reserve(id, nil); err != nil {
		return nil, joined(err, s.free(ctx))
	}
	if err := s.become(ctx, f, prefix+string(id), p.shapeOf(f, spec)); err != nil {
		p.books.Release(id)
		return nil, joined(err, s.free(ctx))
	}
	p.books.Use(s)
	return p.settle(ctx, s.made, id, spec, caps, nil)
}

// fits reports whether the container can become what a spec asks for.
func (s *spare) fits(f *facts, spec cove.Spec) bool {
	select {
	case <-s.made.conn.Done(): // it died while it waited, and nobody has lost anything
		return false
	default:
	}
	want, have := s.p.shapeOf(f, spec), s.made.shape
	if len(spec.Volumes) > 0 || spec.Snapshot != "" || s.made.image.id != f.images[spec.Template].id {
		return false
	}
	if want.resources != have.resources && (f.podman || loosens(have.resources, want.resources)) {
		return false
	}
	have.resources, have.temp = want.resources, want.temp // what is in /tmp is memory, which is bounded anew
	return want == have
}

// loosens reports whether a limit would have to be taken away, which cannot be
// done.
func loosens(have, want cove.Resources) bool {
	return have.CPUs > 0 && want.CPUs == 0 || have.Memory > 0 && want.Memory == 0 || have.PIDs > 0 && want.PIDs == 0
}

// become gives the container its name and its limits.
func (s *spare) become(ctx context.Context, f *facts, name string, want shape) error {
	e, err := s.p.open()
	if err != nil {
		return err
	}
	do, cancel := within(ctx, doPatience)
	defer cancel()
	if want.resources != s.made.shape.resources {
		_, err := e.ContainerUpdate(do, s.made.container, client.ContainerUpdateOptions{
			Resources: new(f.limits(want.resources)), RestartPolicy: &container.RestartPolicy{Name: container.RestartPolicyDisabled},
		})
		if err != nil {
			return e.fault(ctx, err, "change the limits of a container")
		}
		s.made.shape.resources = want.resources
	}
	_, err = e.ContainerRename(do, s.made.container, client.ContainerRenameOptions{NewName: name})
	if isTaken(err) {
		return cove.Wrap(cove.Conflict, err, "a container with the name %s exists already", name)
	}
	return e.fault(ctx, err, "name a container")
}

// Discard implements [cove.Spare].
func (s *spare) Discard(ctx context.Context) error {
	if !s.use() {
		return nil
	}
	return s.free(ctx)
}

func (s *spare) free(ctx context.Context) error {
	_ = s.made.conn.Close()
	away, cancel := last(ctx)
	defer cancel()
	err := s.p.remove(away, s.made.container, s.made.volume)
	s.p.books.Use(s)
	return err
}
