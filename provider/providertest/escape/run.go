package escape

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/cove-sandbox/cove"
)

// Options say what to run and with what.
type Options struct {
	Attacker string   // an executable that answers to Name; "" means that of [Armed], or this one
	Only     []string // names of attacks; none means all
	Via      []Via    // ways in; none means all

	// Kernels has a Python, for the attacks by way of [Kernel]; nil: they are not made.
	Kernels cove.Kernels

	// Arrangement is what all sandboxes have; "" is [Plain].
	Arrangement Arrangement
}

// Bounds on waiting. An attack that takes longer is inconclusive.
const (
	armTime    = 2 * time.Minute // to make a sandbox with the attacker in it, which is no attack
	attackTime = time.Minute
	tidyTime   = 20 * time.Second
)

// Run makes the attacks on sandboxes of p, one after the other, and yields a
// finding for each way in. Sandboxes are destroyed before it returns. An error
// is the last thing it yields: p is not ready, a sandbox cannot be made or
// removed, or ctx ended.
func Run(ctx context.Context, p cove.Provider, o Options) iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		err := run(ctx, p, o, func(f Finding) bool { return yield(f, nil) })
		if err != nil && !errors.Is(err, errEnough) {
			yield(Finding{}, err)
		}
	}
}

// RunOne makes one attack by one way in.
func RunOne(ctx context.Context, p cove.Provider, name string, via Via, o Options) (Finding, error) {
	o.Only, o.Via = []string{name}, []Via{via}
	for f, err := range Run(ctx, p, o) {
		return f, err
	}
	return Finding{}, cove.InvalidField("via", "%s is not tried by way of %s", name, via)
}

// errEnough says that whoever reads the findings has seen enough.
var errEnough = errors.New("enough")

func run(ctx context.Context, p cove.Provider, o Options, yield func(Finding) bool) (err error) {
	attacks, err := find(o.Only)
	if err != nil {
		return err
	}
	caps, err := p.Probe(ctx)
	if err != nil {
		return err
	}
	if !caps.Ready {
		return cove.Errorf(cove.Unavailable, "provider %s is not ready: %s", p.Name(), caps.Why).Remedy("%s", caps.Remedy)
	}
	if err := o.Arrangement.check(caps); err != nil {
		return err
	}
	a, err := openArena(ctx, p, caps, o)
	if err != nil {
		return err
	}
	defer func() {
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
		defer cancel()
		err = errors.Join(err, a.close(tidy))
	}()
	for _, attack := range attacks {
		if err := a.play(ctx, attack, o.Via, yield); err != nil {
			return err
		}
	}
	return nil
}

// play makes one attack by every way in.
func (a *arena) play(ctx context.Context, attack Attack, only []Via, yield func(Finding) bool) error {
	for _, via := range attack.Via {
		if len(only) > 0 && !slices.Contains(only, via) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		f := Finding{Attack: attack.Name, Try: attack.Try, Via: via, Skipped: a.reasonNot(attack, via)}
		if f.Skipped == "" {
			v, err := a.attempt(ctx, attack, via)
			switch {
			case errors.Is(err, errNoInterpreter):
				f.Skipped = "there is no interpreter here: " + cove.MessageOf(err)
			case attack.own != nil && cove.ReasonOf(err) == cove.ReasonLimitNotEnforced:
				// Where it promises less, this was not tried.
				f.Detail = "the provider promises to hold the limit, and makes no sandbox with it: " + cove.MessageOf(err)
			case attack.room != nil && cove.CodeOf(err) == cove.Unsupported:
				f.Skipped = "there is no sandbox for it here: " + cove.MessageOf(err)
			case err != nil:
				return err
			default:
				f.Held, f.By, f.Detail = v.held, v.by, v.detail
			}
		}
		if !yield(f) {
			return errEnough
		}
	}
	return nil
}

// reasonNot says why an attack is not made here. What the provider says it
// enforces is always tried.
func (a *arena) reasonNot(attack Attack, via Via) string {
	boundary := a.caps.Isolation.Boundary
	switch {
	case boundary == cove.BoundaryNone && via != Files:
		return "the boundary is none: nothing would stop it, and it is not tried"
	case attack.SharedKernel && boundary != cove.BoundaryNamespaces:
		return "the sandbox has a kernel of its own, and this stays inside it"
	case via == Terminal && !slices.Contains(a.caps.Powers, cove.PowerTerminal):
		return "the provider has no terminals"
	case via == Solo && !slices.Contains(a.caps.Powers, cove.PowerSolo):
		return "the provider has no sandboxes for one program"
	case via == Kernel && a.offered == nil:
		return "no interpreters were given to try it in"
	}
	if why := a.lacks(attack); why != "" {
		return why
	}
	have := a.caps.For(a.specFor(attack).Workspace.Kind)
	for _, l := range attack.Limits {
		if got := have.Of(l); got != cove.Hard {
			return "the limit on " + string(l) + " is " + string(got) + " here: nothing promises to stop it"
		}
	}
	return ""
}

// replace ends the common sandboxes after an attack that was not stopped: what
// it did to them must not be blamed on those that follow.
func (a *arena) replace(ctx context.Context, v verdict) error {
	if v.held {
		return nil
	}
	return a.endShared(ctx)
}

// attempt makes an attack in the sandbox that it needs.
func (a *arena) attempt(ctx context.Context, attack Attack, via Via) (v verdict, err error) {
	making, made := context.WithTimeout(ctx, armTime)
	defer made()
	r := &round{arena: a, via: via, needs: attack}
	defer func() { err = errors.Join(err, r.endSolos(ctx)) }()
	if attack.own == nil {
		r.box, err = a.common(making, attack)
		if err != nil {
			return verdict{}, err
		}
		ctx, cancel := context.WithTimeout(ctx, attackTime)
		defer cancel()
		if err := r.knock(ctx); err != nil {
			return verdict{}, err
		}
		v = attack.run(ctx, r)
		return v, a.replace(ctx, v)
	}
	box, err := a.create(making, attack)
	if attack.coarse != nil && cove.ReasonOf(err) == cove.ReasonLimitNotEnforced {
		attack.own, attack.coarse = attack.coarse, nil
		r.needs = attack
		box, err = a.create(making, attack)
	}
	if err != nil {
		return verdict{}, err
	}
	r.box = box
	ctx, cancel := context.WithTimeout(ctx, attackTime)
	defer cancel()
	defer func() { err = errors.Join(err, a.destroy(ctx, box)) }()
	if err := r.knock(ctx); err != nil {
		return verdict{}, err
	}
	return attack.run(ctx, r), nil
}
