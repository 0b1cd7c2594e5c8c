//go:build linux

package e2b

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/cove-sandbox/cove"
)

// cleanTime is what tidying up after a fault may take, when nobody waits any more.
const cleanTime = 20 * time.Second

// Create implements [cove.Provider].
func (p *Provider) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	if !id.Valid() {
		return nil, cove.InvalidField("id", "%.40q is not an id", string(id))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := p.possible(spec); err != nil {
		return nil, err
	}
	if p.cfg.APIKey == "" {
		return nil, cove.Errorf(cove.Unavailable, "E2B_API_KEY is not set").Reason(cove.ReasonConfiguration).Remedy("set E2B_API_KEY to a key of your team at E2B")
	}
	if _, err := p.image(); err != nil {
		return nil, err // before there is a machine that could not be used
	}
	if _, ok := p.ledger.get(id); ok {
		return nil, cove.Errorf(cove.Conflict, "sandbox %s exists already", id)
	}
	s := newSandbox(p, id)
	if err := p.reserve(s); err != nil {
		return nil, err
	}
	if err := p.build(ctx, s, spec); err != nil {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
		defer cancel()
		err = errors.Join(err, s.Destroy(after))
		p.release(s) // also where it could not be ended: Remove finds it by its metadata
		return nil, firstOf(err)
	}
	return s, nil
}

// firstOf is what went wrong first, with all that followed as its cause.
func firstOf(err error) error {
	if e, ok := errors.AsType[*cove.Error](err); ok && !errors.Is(err, context.Canceled) {
		c := *e
		c.Err = err
		if e == err { //nolint:errorlint // whether there is more than the one
			c.Err = e.Err
		}
		return &c
	}
	return err
}

// possible refuses what no machine at E2B can be.
func (p *Provider) possible(spec cove.Spec) error {
	if spec.Snapshot != "" {
		return cove.Errorf(cove.Unsupported, "snapshot: provider e2b keeps no snapshots").With("field", "snapshot")
	}
	return p.caps().Check(name, spec)
}

// build makes the machine and enters it. What it leaves on error Destroy ends.
func (p *Provider) build(ctx context.Context, s *sandbox, spec cove.Spec) error {
	owner, err := p.ledger.owner()
	if err != nil {
		return err
	}
	answer, err := p.order(ctx, newMachine{
		Template: p.cfg.Template, Timeout: seconds(p.cfg.Timeout), Secure: true,
		Internet: spec.Network.Mode == cove.NetworkOpen,
		Metadata: map[string]string{metaOwner: owner, metaID: string(s.id)},
	})
	if cove.CodeOf(err) == cove.NotFound {
		return cove.Wrap(cove.Unavailable, err, "E2B has no template %.60q", p.cfg.Template).Reason(cove.ReasonConfiguration).
			Remedy("set E2B_TEMPLATE to a template of your team, or leave it out")
	}
	if err != nil {
		s.maybe() // it may be there all the same
		return err
	}
	r := record{ID: s.id, Machine: answer.Machine, Env: maps.Clone(spec.Env), Isolation: p.caps().For(spec.Workspace.Kind)}
	s.found(r, p.connectTo(answer))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := p.look(ctx, &r, spec); err != nil {
		return err
	}
	if err := p.ledger.put(r); err != nil {
		return err
	}
	s.found(r, p.connectTo(answer))
	if err := s.m.furnish(ctx); err != nil {
		return err
	}
	return s.enter(ctx, true)
}

// lingerTime is how long the answer to an order is waited for after its caller left.
const lingerTime = 10 * time.Second

// order asks for a machine. E2B makes it whether anybody waits or not, and may do so
// after a look for it found none: so the answer is heard also when ctx has ended.
func (p *Provider) order(ctx context.Context, m newMachine) (machineAnswer, error) {
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	late := make(chan struct{})
	defer close(late)
	defer context.AfterFunc(ctx, func() {
		timer := time.NewTimer(lingerTime)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-p.life.Done():
		case <-late:
		}
		end(context.Cause(ctx))
	})()
	return p.api.create(life, m)
}

// Bounds on what a server says of a machine; more is not believed, and not charged.
const (
	mostCPUs   = 1 << 12
	mostMemory = 1 << 26 // megabytes
)

// look finds out what a machine is like, and makes sure that E2B has heard that it
// is to have no network: a server that does not say so may not know of it.
func (p *Provider) look(ctx context.Context, r *record, spec cove.Spec) error {
	m, err := p.api.detail(ctx, r.Machine)
	if err != nil {
		return err
	}
	if m.CPUs > 0 && m.CPUs <= mostCPUs && m.Memory >= 0 && m.Memory <= mostMemory {
		r.CPUs, r.Memory = m.CPUs, cove.Bytes(m.Memory)*cove.MiB
	}
	if spec.Network.Mode == cove.NetworkOpen || m.Internet != nil && !*m.Internet {
		return nil
	}
	r.Isolation.Network = cove.Absent
	if slices.Contains(spec.Floors, cove.LimitNetwork) {
		return cove.Errorf(cove.Unsupported, "the network limit was asked for, and %s does not say that it closed the machine's network", p.api.whom).
			Reason(cove.ReasonLimitNotEnforced).With("limit", string(cove.LimitNetwork)).Remedy("leave the limit out, or use a server that can close networks")
	}
	return nil
}

// Attach implements [cove.Provider].
func (p *Provider) Attach(ctx context.Context, id cove.ID) (cove.Sandbox, error) {
	if !id.Valid() {
		return nil, cove.Errorf(cove.NotFound, "there is no sandbox %.40q", string(id))
	}
	p.mu.Lock()
	s := p.boxes[id]
	p.mu.Unlock()
	if s != nil {
		return s, s.ready(ctx)
	}
	r, ok := p.ledger.get(id)
	if !ok {
		return nil, cove.Errorf(cove.NotFound, "there is no sandbox %s", id)
	}
	s = newSandbox(p, id)
	s.known = true
	if err := p.reserve(s); err != nil {
		if cove.CodeOf(err) == cove.Conflict { // somebody else was faster
			return p.Attach(ctx, id)
		}
		return nil, err
	}
	if err := p.takeUp(ctx, s, r); err != nil {
		s.leave()
		p.release(s)
		return nil, err
	}
	return s, nil
}

// takeUp finds the machine of a record again and enters it.
func (p *Provider) takeUp(ctx context.Context, s *sandbox, r record) error {
	answer, err := p.api.connect(ctx, r.Machine, p.cfg.Timeout)
	if cove.CodeOf(err) == cove.NotFound {
		return errors.Join(cove.Wrap(cove.NotFound, err, "there is no sandbox %s: its machine at E2B is gone", s.id), p.ledger.drop(s.id))
	}
	if err != nil {
		return err
	}
	if answer.Machine != r.Machine {
		return stranger(p.api.whom, nil)
	}
	s.found(r, p.connectTo(answer))
	return s.enter(ctx, false)
}
