package engine

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// claimKey names an idempotency key of a tenant.
type claimKey struct{ tenant, key string }

// claimAge is how long an idempotency key is remembered.
const claimAge = 24 * time.Hour

// deed is something that is made once for an idempotency key.
type deed[T any] struct {
	key  string
	verb cove.Verb
	on   cove.ID // the session that it is about, or ""
	what any     // all else that makes two requests the same

	// do makes it and returns what it is found by. That should be the id that do is
	// given, which is written down before: whatever a crash leaves is found by it.
	do func(id cove.ID) (T, cove.ID, error)
	// again returns what was made before.
	again func(id cove.ID) (T, error)
	// lost is the answer where a crash came before do was over and again finds
	// nothing. No error, or no function: nothing was made, and do is tried anew.
	lost func(id cove.ID) error
}

// planned marks what a claim says before it is known to be so.
const planned = "?"

// once does a deed for the first request with an idempotency key, and gives later
// ones what the first one made. A request that failed may be tried again.
func once[T any](ctx context.Context, e *Engine, p cove.Principal, d deed[T]) (out T, err error) {
	if d.key == "" {
		out, _, err = d.do(cove.NewID())
		return out, err
	}
	if err := (cove.OpenRequest{IdempotencyKey: d.key}).Validate(); err != nil {
		return out, err
	}
	k := claimKey{p.Tenant, d.key}
	release, err := e.holdClaim(ctx, k)
	if err != nil {
		return out, err
	}
	defer release()
	id := cove.NewID()
	was, err := e.takeClaim(ctx, k, planned+id, struct {
		Verb cove.Verb
		On   cove.ID
		What any
	}{d.verb, d.on, d.what})
	if err != nil {
		return out, err
	}
	if was != nil {
		if err := e.onlyHere(was.Node); err != nil {
			return out, err
		}
		made, sure := strings.CutPrefix(string(was.Result), planned)
		sure = !sure && made != ""
		if made != "" {
			out, err := d.again(cove.ID(made))
			if err == nil || sure || !absent(err) && cove.ReasonOf(err) != cove.ReasonNodeLost {
				return out, err // what its maker's node took with it was never anybody's
			}
			if d.lost != nil {
				if err := d.lost(cove.ID(made)); err != nil {
					return out, err
				}
			}
		}
		if err := e.cfg.Store.SetClaim(ctx, k.tenant, k.key, planned+id); err != nil {
			return out, err
		}
	}
	return claimFor(ctx, e, k, id, d.do)
}

// absent reports whether an error says that there never was such a thing.
func absent(err error) bool {
	reason := cove.ReasonOf(err)
	return cove.CodeOf(err) == cove.NotFound && (reason == "" || reason == cove.ReasonNoSession)
}

// takeClaim ties a key to a request, or returns the claim of an earlier one that
// was the same.
func (e *Engine) takeClaim(ctx context.Context, k claimKey, result cove.ID, what any) (*cove.Claim, error) {
	text, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	claim := cove.Claim{Tenant: k.tenant, Key: k.key, Digest: e.sameAs(text), Result: result, ExpiresAt: now.Add(claimAge)}
	was, err := e.cfg.Store.TakeClaim(ctx, claim, now)
	if err == nil && was != nil && was.Digest != claim.Digest {
		return nil, cove.Errorf(cove.Conflict, "the idempotency key was used for another request").
			Reason(cove.ReasonKeyReused).Remedy("use a fresh key for every request")
	}
	return was, err
}

// sameAs is what a request is known by.
func (e *Engine) sameAs(request []byte) string {
	if e.cfg.Same != nil {
		return e.cfg.Same(request)
	}
	return e.cfg.Journal.Digest(request)
}

// claimFor does the work and ties its result to the key.
func claimFor[T any](ctx context.Context, e *Engine, k claimKey, id cove.ID, do func(cove.ID) (T, cove.ID, error)) (T, error) {
	out, made, err := do(id)
	after := context.WithoutCancel(ctx)
	if err != nil {
		if derr := e.cfg.Store.DropClaim(after, k.tenant, k.key); derr != nil {
			e.cfg.Logger.ErrorContext(ctx, "drop idempotency key", errAttr(derr))
		}
		return out, err
	}
	if err := e.cfg.Store.SetClaim(after, k.tenant, k.key, made); err != nil {
		e.cfg.Logger.ErrorContext(ctx, "set idempotency key; what it stands for is made all the same", errAttr(err))
	}
	return out, nil
}

// claimed returns the session that a key made before.
func (e *Engine) claimed(tenant string, id cove.ID) (*cove.Session, error) {
	l, err := e.find(tenant, id)
	if err != nil {
		return nil, err
	}
	return l.view(), nil
}

// idOf adds to a session what it is found by.
func idOf(s *cove.Session, err error) (*cove.Session, cove.ID, error) {
	if err != nil {
		return nil, "", err
	}
	return s, s.ID, nil
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
