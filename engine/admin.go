package engine

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/cove-sandbox/cove"
)

// admin is the part of the platform for operators.
type admin struct{ v view }

func (p admin) does(verb cove.Verb) action { return action{Action: cove.Action{Verb: verb}} }

// CreateKey implements [cove.Admin].
func (p admin) CreateKey(ctx context.Context, req cove.KeyRequest) (*cove.Key, string, error) {
	var secret string
	k, err := act(ctx, p.v, p.does(cove.AdminCreateKey), func(ctx context.Context, st *step) (*cove.Key, error) {
		if err := req.Validate(); err != nil {
			return nil, err
		}
		if req.Tenant == "" {
			req.Tenant = cove.DefaultTenant
		}
		what := req
		what.IdempotencyKey = ""
		return once(ctx, p.v.e, p.v.p, deed[*cove.Key]{
			key: req.IdempotencyKey, verb: cove.AdminCreateKey, what: what,
			do: func(id cove.ID) (*cove.Key, cove.ID, error) {
				st.outcome.Data = madeSession(id)
				var k *cove.Key
				var err error
				k, secret, err = p.putKey(ctx, id, req)
				return k, id, err
			},
			again: func(id cove.ID) (*cove.Key, error) { return nil, p.keyMade(ctx, id) },
		})
	})
	if err != nil {
		return nil, "", err
	}
	return visible(k), secret, nil
}

// putKey keeps a new key with an id and returns it with its secret.
func (p admin) putKey(ctx context.Context, id cove.ID, req cove.KeyRequest) (*cove.Key, string, error) {
	k := &cove.Key{
		ID: id, Name: req.Name, Tenant: req.Tenant, Scopes: req.Scopes,
		Limits: req.Limits, Defaults: req.Defaults, CreatedAt: time.Now(),
	}
	if req.Form == cove.KeyMicrosandbox {
		k.Limits.Namespace = cmp.Or(req.Limits.Namespace, cove.AllNamespaces)
		req.TTL = cmp.Or(req.TTL, cove.MicrosandboxTTL)
	}
	if req.TTL > 0 {
		k.ExpiresAt = k.CreatedAt.Add(req.TTL)
	}
	secret := cove.NewSecretFor(req.Form, k)
	k.Hash = cove.HashSecret(secret)
	return k, secret, p.v.e.cfg.Store.PutKey(ctx, k)
}

// keyMade is the answer to who repeats the request for a key: it is there, and
// its secret is not.
func (p admin) keyMade(ctx context.Context, id cove.ID) error {
	if _, err := p.v.e.cfg.Store.KeyByID(ctx, id); err != nil {
		return err
	}
	return cove.Errorf(cove.Conflict, "an earlier request with this idempotency key made key %s, whose secret was shown then and cannot be shown again", id).
		Reason(cove.ReasonKeyReused).With("key_id", string(id)).Remedy("use that secret; where it is lost, revoke the key and make another with a fresh idempotency key")
}

// Keys implements [cove.Admin].
func (p admin) Keys(ctx context.Context) iter.Seq2[*cove.Key, error] {
	return actSeq(ctx, p.v, p.does(cove.AdminKeys), func(ctx context.Context, _ *step) (iter.Seq2[*cove.Key, error], error) {
		return p.v.e.cfg.Store.Keys(ctx), nil
	})
}

// RevokeKey implements [cove.Admin]. Revoking twice is no error. What callers
// with the key have under way is for who let them in to end, but for their runs,
// which nobody need wait for.
func (p admin) RevokeKey(ctx context.Context, id cove.ID) error {
	return actDone(ctx, p.v, p.does(cove.AdminRevokeKey), func(ctx context.Context, _ *step) error {
		k, err := p.v.e.cfg.Store.KeyByID(ctx, id)
		if cove.CodeOf(err) == cove.NotFound {
			return cove.Errorf(cove.NotFound, "there is no key %.40q", string(id))
		}
		if err != nil {
			return err
		}
		if k.RevokedAt.IsZero() {
			k.RevokedAt = time.Now()
		}
		if err := p.v.e.cfg.Store.PutKey(ctx, k); err != nil {
			return err
		}
		p.v.e.KeyRevoked(ctx, id)
		return nil
	})
}

// Tenant implements [cove.Admin]. A tenant nobody wrote down has no bounds.
func (p admin) Tenant(ctx context.Context, name string) (*cove.TenantReport, error) {
	a := p.does(cove.AdminTenant)
	a.Tenant = name
	return act(ctx, p.v, a, func(ctx context.Context, _ *step) (*cove.TenantReport, error) {
		if err := cove.ValidTenant(name); err != nil {
			return nil, err
		}
		p.v.e.bookAll(name)
		k, err := p.v.e.tenants.load(ctx, name)
		if err != nil {
			return nil, err
		}
		held, bound, err := p.v.e.diskOf(ctx, name)
		if err != nil {
			return nil, err
		}
		r := &cove.TenantReport{Disk: held, MaxDisk: bound, Tenant: k.rec, Used: k.used, Cost: p.v.e.cfg.Prices.Of(k.used)}
		r.Sessions, r.Memory = p.v.e.gate.Of(name)
		return r, nil
	})
}

// SetTenant implements [cove.Admin].
func (p admin) SetTenant(ctx context.Context, t cove.Tenant) error {
	return actDone(ctx, p.v, p.does(cove.AdminSetTenant), func(ctx context.Context, _ *step) error {
		if err := cove.ValidTenant(t.Name); err != nil {
			return err
		}
		if err := t.Quota.Validate(); err != nil {
			return err
		}
		t.UpdatedAt = time.Now()
		return p.v.e.tenants.put(ctx, t)
	})
}

// Stats implements [cove.Admin].
func (p admin) Stats(ctx context.Context) (*cove.Stats, error) {
	return act(ctx, p.v, p.does(cove.AdminStats), func(context.Context, *step) (*cove.Stats, error) {
		defer p.v.e.wantSamples() // for the next one: this one tells what was known when it came
		return p.v.e.stats(p.v.p), nil
	})
}

// Tasks implements [cove.Admin].
func (p admin) Tasks(ctx context.Context) ([]cove.TaskStatus, error) {
	return act(ctx, p.v, p.does(cove.AdminTasks), func(context.Context, *step) ([]cove.TaskStatus, error) {
		return p.v.e.tasks.Status(), nil
	})
}

// ControlTask implements [cove.Admin]. Who has tasks run waits for what the expiry
// task handed on, too.
func (p admin) ControlTask(ctx context.Context, name string, do cove.TaskVerb) ([]cove.TaskStatus, error) {
	return act(ctx, p.v, p.does(cove.AdminControlTask), func(ctx context.Context, _ *step) ([]cove.TaskStatus, error) {
		if err := p.v.e.tasks.Control(ctx, name, do); err != nil {
			return nil, err
		}
		if do == cove.RunTask && (name == "" || name == taskExpiry) {
			if err := p.v.e.rests.wait(ctx); err != nil {
				return nil, err
			}
		}
		return p.v.e.tasks.Status(), nil
	})
}

// Events implements [cove.Admin]. Who may not see all sees those of its own
// tenant.
func (p admin) Events(ctx context.Context, f cove.EventFilter) iter.Seq2[cove.Event, error] {
	if f.Tenant == "" && !p.v.p.May(cove.ScopeAdmin) {
		f.Tenant = p.v.p.Tenant
	}
	a := p.does(cove.AdminEvents)
	a.Tenant = f.Tenant
	return actSeq(ctx, p.v, a, func(ctx context.Context, _ *step) (iter.Seq2[cove.Event, error], error) {
		return p.v.e.cfg.Journal.Events(ctx, f), nil
	})
}

// Doctor implements [cove.Admin].
func (p admin) Doctor(ctx context.Context) ([]cove.ProviderReport, error) {
	return act(ctx, p.v, p.does(cove.AdminDoctor), func(ctx context.Context, _ *step) ([]cove.ProviderReport, error) {
		e := p.v.e
		reports := ladder(ctx, e.cfg.Providers, e.cfg.Provider, e.cfg.Fallback, e.probes.of)
		for i := range reports {
			c := &reports[i].Capabilities
			c.Templates = cove.VisibleTemplates(p.v.p.Tenant, c.Templates)
		}
		return reports, ctx.Err()
	})
}
