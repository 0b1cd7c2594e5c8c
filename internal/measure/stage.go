package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/cove-sandbox/cove"
)

// Stage is a provider under measurement: one live sandbox of it, and all that
// fresh ones are made from. It is used by one goroutine at a time.
type Stage struct {
	provider cove.Provider
	caps     cove.Capabilities
	spec     cove.Spec
	live     cove.Sandbox
	own      map[process]bool // processes that are the provider's, and of no sandbox
	groups   []string         // where the provider makes control groups
}

// Open prepares a provider: it makes the live sandbox, and one that it destroys
// again, so that what the provider does only once has been done. A provider
// that is not ready is Unavailable, with the remedy. The caller closes the
// stage, and then the provider.
func Open(ctx context.Context, p cove.Provider) (_ *Stage, err error) {
	caps, err := p.Probe(ctx)
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "provider %s cannot be probed", p.Name()).Remedy("see cove doctor")
	}
	s := &Stage{provider: p, caps: caps, spec: spec(caps)}
	if err := caps.Check(p.Name(), s.spec); err != nil {
		return nil, err
	}
	if err := s.Cold().Run(ctx); err != nil {
		return nil, err
	}
	if s.own, err = family(); err != nil {
		return nil, err
	}
	if s.live, err = s.create(ctx); err != nil {
		return nil, err
	}
	if err = runTrue(ctx, s.live); err == nil {
		err = s.findGroups()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

// findGroups looks at the control groups of the live sandbox.
func (s *Stage) findGroups() error {
	all, err := family()
	if err != nil {
		return err
	}
	for p := range s.own {
		delete(all, p)
	}
	s.groups, err = groupsOf(all)
	return err
}

// Close destroys the live sandbox.
func (s *Stage) Close(ctx context.Context) error {
	return s.live.Destroy(context.WithoutCancel(ctx))
}

// spec is what a session gets that asks for nothing, but for the processors: a
// bound on them would be measured as slowness. All limits are set, because
// setting them is a part of the cost.
func spec(caps cove.Capabilities) cove.Spec {
	s := cove.Spec{
		Template:  "base",
		Resources: cove.Resources{CPUs: float64(runtime.NumCPU()), Memory: cove.GiB, PIDs: 256},
		Network:   cove.Network{Mode: cove.NetworkNone},
		Workspace: cove.Workspace{Kind: cove.WorkspaceMemory, Size: 256 * cove.MiB, Files: 100_000},
	}
	if !slices.Contains(caps.Templates, s.Template) && len(caps.Templates) > 0 {
		s.Template = caps.Templates[0]
	}
	return s
}

func (s *Stage) create(ctx context.Context) (cove.Sandbox, error) {
	return s.provider.Create(ctx, cove.NewID(), s.spec)
}

// runTrue runs the work in a sandbox.
func runTrue(ctx context.Context, box cove.Sandbox) error {
	p, err := box.Start(ctx, cove.Command{Argv: []string{program}})
	if err != nil {
		return err
	}
	r, err := p.Wait(ctx)
	if err == nil && (r.Outcome != cove.Exited || r.ExitCode != 0) {
		err = fmt.Errorf("%s %s with exit code %d", program, r.Outcome, r.ExitCode)
	}
	return err
}

// Live runs `true` in a sandbox that is there already.
func (s *Stage) Live() Contender {
	return Contender{Name: "true in a live session", Run: func(ctx context.Context) error { return runTrue(ctx, s.live) }}
}

// Cold makes a sandbox, runs `true` in it and destroys it.
func (s *Stage) Cold() Contender {
	return Contender{Name: "create, true, destroy", Run: func(ctx context.Context) error {
		box, err := s.create(ctx)
		if err != nil {
			return err
		}
		return errors.Join(runTrue(ctx, box), box.Destroy(context.WithoutCancel(ctx)))
	}}
}

// Solo is Cold with a sandbox that is made for one program. ok is false where the
// provider makes none.
func (s *Stage) Solo() (c Contender, ok bool) {
	soloist, ok := cove.As[cove.Soloist](s.provider)
	if !ok || !slices.Contains(s.caps.Powers, cove.PowerSolo) {
		return c, false
	}
	mold := cove.Mold{Provider: s.provider.Name(), Template: s.spec.Template, Workspace: s.spec.Workspace.Kind, Solo: true, Resources: s.spec.Resources}
	return Contender{Name: "create, true, destroy, for one program", Run: func(ctx context.Context) error {
		spare, err := soloist.PrepareSolo(ctx, mold)
		if err != nil {
			return err
		}
		box, err := spare.Claim(ctx, cove.NewID(), s.spec)
		if err != nil {
			return err
		}
		return errors.Join(runTrue(ctx, box), box.Destroy(context.WithoutCancel(ctx)))
	}}, true
}

// depth is how many prepared sandboxes wait: as in a pool, one that is taken has
// been there for some rounds.
const depth = 4

// Pooled takes a prepared sandbox and runs `true` in it; preparing it before and
// destroying it afterwards do not count. ok is false where the provider cannot
// prepare any.
func (s *Stage) Pooled() (c Contender, ok bool) {
	preparer, ok := cove.As[cove.Preparer](s.provider)
	if !ok || !slices.Contains(s.caps.Powers, cove.PowerPrepare) {
		return c, false
	}
	mold := cove.Mold{Provider: s.provider.Name(), Template: s.spec.Template, Workspace: s.spec.Workspace.Kind}
	var waiting []cove.Spare
	var box cove.Sandbox
	return Contender{
		Name: "first true from the pool",
		Before: func(ctx context.Context) error {
			for len(waiting) < depth {
				spare, err := preparer.Prepare(ctx, mold)
				if err != nil {
					return err
				}
				waiting = append(waiting, spare)
			}
			return nil
		},
		Run: func(ctx context.Context) (err error) {
			spare := waiting[0]
			waiting = waiting[1:]
			if box, err = spare.Claim(ctx, cove.NewID(), s.spec); err != nil {
				return err
			}
			return runTrue(ctx, box)
		},
		After: func(ctx context.Context) error {
			if box == nil {
				return nil // a spare whose Claim fails is used up
			}
			defer func() { box = nil }()
			return box.Destroy(ctx)
		},
		End: func(ctx context.Context) error {
			var errs []error
			for _, spare := range waiting {
				errs = append(errs, spare.Discard(ctx))
			}
			waiting = nil
			return errors.Join(errs...)
		},
	}, true
}
