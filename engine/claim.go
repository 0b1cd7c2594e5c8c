package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cove-sandbox/cove"
)

// claimKey names an idempotency key of a tenant.
type claimKey struct{ tenant, key string }

// claimAge is how long an idempotency key is remembered.
const claimAge = 24 * time.Hour

// once runs do for the first request with an idempotency key, and gives later
// ones what the first one made. what is all that makes two requests the same. A
// request that failed may be tried again.
func (e *Engine) once(ctx context.Context, p cove.Principal, key string, what any, do func() (*cove.Session, error)) (*cove.Session, error) {
	if key == "" {
		return do()
	}
	if err := (cove.OpenRequest{IdempotencyKey: key}).Validate(); err != nil {
		return nil, err
	}
	k := claimKey{p.Tenant, key}
	release, err := e.holdClaim(ctx, k)
	if err != nil {
		return nil, err
	}
	defer release()
	text, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	claim := cove.Claim{
		Tenant: k.tenant, Key: k.key, Digest: e.cfg.Journal.Digest(text), ExpiresAt: now.Add(claimAge),
	}
	was, err := e.cfg.Store.TakeClaim(ctx, claim, now)
	if err != nil {
		return nil, err
	}
	if was != nil {
		if was.Digest != claim.Digest {
			return nil, cove.Errorf(cove.Conflict, "the idempotency key was used for another request").
				Reason(cove.ReasonKeyReused).Remedy("use a fresh key for every request")
		}
		if was.Result != "" {
			return e.claimed(p.Tenant, was.Result)
		}
	}
	return e.claimFor(ctx, k, do)
}

// claimed returns what a key made before.
func (e *Engine) claimed(tenant string, id cove.ID) (*cove.Session, error) {
	l, err := e.find(tenant, id)
	if err != nil {
		return nil, err
	}
	return l.view(), nil
}

// claimFor does the work and ties its result to the key.
func (e *Engine) claimFor(ctx context.Context, k claimKey, do func() (*cove.Session, error)) (*cove.Session, error) {
	s, err := do()
	after := context.WithoutCancel(ctx)
	if err != nil {
		if derr := e.cfg.Store.DropClaim(after, k.tenant, k.key); derr != nil {
			e.cfg.Logger.ErrorContext(ctx, "drop idempotency key", errAttr(derr))
		}
		return nil, err
	}
	if err := e.cfg.Store.SetClaim(after, k.tenant, k.key, s.ID); err != nil {
		e.cfg.Logger.ErrorContext(ctx, "set idempotency key; the session is made all the same", errAttr(err), sessionAttr(s.ID))
	}
	return s, nil
}

// holdClaim lets one request at a time work under a key.
func (e *Engine) holdClaim(ctx context.Context, k claimKey) (release func(), err error) {
	for {
		e.mu.Lock()
		busy, ok := e.claims[k]
		if !ok {
			done := make(chan struct{})
			e.claims[k] = done
			e.mu.Unlock()
			return func() {
				e.mu.Lock()
				delete(e.claims, k)
				e.mu.Unlock()
				close(done)
			}, nil
		}
		e.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
